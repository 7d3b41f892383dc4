"""Where devices are found by name: files of the user's, then those that are shipped.

a path that ends in .toml
NAME.toml in a directory of BLOCKLANG_DEVICE_PATH
NAME.toml in `devices` of BLOCKLANG_CONFIG_DIR, or of `blocklang` in XDG_CONFIG_HOME or ~/.config
the shipped descriptions
host, as detected: its rates are not known until `blocklang doctor --measure` wrote a file of that name
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from blocklang.diagnostics import UsageError
from blocklang.target.device import Device
from blocklang.target.device_file import parse_device
from blocklang.target.device_tables import guess

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SUFFIX = ".toml"
HOST = "host"


def user_directory() -> Path:
    """The directory of the user's own descriptions; it need not exist."""
    if chosen := os.environ.get("BLOCKLANG_CONFIG_DIR"):
        return Path(os.path.abspath(chosen), "devices")
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(os.path.abspath(base), "blocklang", "devices")


def _directories() -> Iterator[Path]:
    for entry in os.environ.get("BLOCKLANG_DEVICE_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry)
    yield user_directory()


def user_files() -> dict[str, Path]:
    """The user's descriptions by name; the first directory that has one wins."""
    found: dict[str, Path] = {}
    for directory in _directories():
        for path in sorted(directory.glob(f"*{SUFFIX}")) if directory.is_dir() else ():
            found.setdefault(path.name.removesuffix(SUFFIX), path)
    return found


def shipped_names() -> tuple[str, ...]:
    """The devices that are shipped as files."""
    names = (entry.name for entry in _shipped().iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def device_names() -> tuple[str, ...]:
    """Every device that a name finds: shipped, the host, and the user's own."""
    return tuple(sorted({*shipped_names(), HOST, *user_files()}))


def _shipped() -> Traversable:
    from importlib import resources  # no launch needs it

    return resources.files("blocklang.target.devices")


@functools.cache
def _read_shipped(name: str) -> Device:
    return parse_device(shipped_text(name), name + SUFFIX)


def shipped_text(name: str) -> str:
    """The text of a shipped description."""
    return _shipped().joinpath(name + SUFFIX).read_text(encoding="utf-8")


def find_device(text: str) -> Device:
    """The device of that name, or the one that a file describes if `text` is a path to a TOML file.

    Raises:
        UsageError: there is no such device or file, or the file is wrong.
    """
    if text.endswith(SUFFIX):
        return read_device(Path(text))
    own = user_files()
    if text in own:
        return read_device(own[text])
    if text in shipped_names():
        return _read_shipped(text)
    if text == HOST:
        from blocklang.target.host_device import detected_text  # looks at the machine

        return parse_device(detected_text(), "host (detected)")
    raise unknown_device(text)


def device_given(device: object) -> Device:
    """The device that a program of the user's names: a description as it is, a name, or the path of a file.

    Raises:
        UsageError: it is none of these; there is no such device or file, or the file is wrong.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, os.PathLike):
        return read_device(Path(os.fsdecode(device)))
    if isinstance(device, str):
        return find_device(device)
    raise UsageError(
        f"a {type(device).__name__} is no device",
        help=f"give a name ({', '.join(device_names())}), the path of a {SUFFIX} file, or a description",
    )


def device_text(text: str) -> str:
    """The file that describes a device, as text; `text` is as in `find_device`."""
    own = user_files()
    if text.endswith(SUFFIX) or text in own:
        return _read(Path(text) if text.endswith(SUFFIX) else own[text])
    if text in shipped_names():
        return shipped_text(text)
    if text == HOST:
        from blocklang.target.host_device import detected_text

        return detected_text()
    raise unknown_device(text)


def unknown_device(text: str) -> UsageError:
    """What an unknown name is answered: the list."""
    close = guess(text, device_names())
    start = f"{close} " if close else ""
    names = ", ".join(device_names())
    return UsageError(
        f"there is no device {text!r}",
        help=f"{start}The devices are {names}; your own is the path of a {SUFFIX} file",
    )


def read_device(path: Path) -> Device:
    """The device that a file describes.

    Raises:
        UsageError: the file cannot be read, or a figure is missing, unknown or contradictory.
    """
    return parse_device(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no file {path}", help="a device is a name or a description file"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from error
    except ValueError as error:  # a NUL in the path
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error

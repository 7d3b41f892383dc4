"""A wheel around a library: a package with one typed function, which needs NumPy and no compiler.

setuptools packs it. The wheel's tag is that of this machine's C library (`packaging.tags`): it installs where
that version or a later one is.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from blocklang.aot.library import Library, replace_file
from blocklang.aot.linker import LinkError
from blocklang.aot.prototype import Argument, Prototype
from blocklang.diagnostics import UsageError

_NEEDED = ("packaging", "setuptools")
_IMPORTED = ("numpy", "ml_dtypes")

# setuptools calls a package that compiles nothing itself pure, and this one is not.
_SETUP = """\
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class ForPlatform(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", {platform!r})


setup(
    name={name!r},
    version={version!r},
    description={description!r},
    packages=[{name!r}],
    package_data={{{name!r}: ["*.so", "*.h", "py.typed"]}},
    install_requires={requirements!r},
    python_requires=">=3.10",
    distclass=Binary,
    cmdclass={{"bdist_wheel": ForPlatform}},
)
"""


def check_wheel_tools(version: str) -> None:
    """Refuse to begin what cannot be ended.

    Raises:
        UsageError: setuptools or packaging is missing, or the version is none (PEP 440).
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"a wheel needs {' and '.join(missing)}, not installed here",
            help="pip install 'blocklang[build]'",
        )
    from packaging.version import InvalidVersion, Version

    try:
        Version(version)
    except InvalidVersion:
        raise UsageError(
            f"expected a version for --wheel-version, got {version!r}", help="for instance 1.0 or 2.1.dev3"
        ) from None


def check_package(name: str) -> None:
    """Refuse a package that nobody could import, or that would take the place of what it needs.

    Raises:
        UsageError: the name is one of Python's own modules, or of a package that wheels need.
    """
    if name in sys.stdlib_module_names or name in _IMPORTED:
        owner = "a package that it needs" if name in _IMPORTED else "a module of Python's own"
        raise UsageError(
            f"a wheel cannot be called {name!r}, the name of {owner}",
            help=f"choose another with --name, such as my_{name}",
        )


def check_types(prototype: Prototype) -> None:
    """Refuse element types that no NumPy array has. Raises UsageError."""
    for each in prototype.arguments:
        if each.type.name == "f8e4b15":
            raise UsageError(
                f"argument {each.name!r} is of {each.type}, and there are no NumPy arrays of that type",
                help="build without --wheel: C functions take the bits",
            )


def build_wheel(library: Library, directory: Path, version: str) -> Path:
    """Write the wheel of a library into `directory`; its path.

    Raises:
        UsageError: a tool is missing, the version is none, or the directory cannot be written.
        LinkError: setuptools failed.
    """
    check_wheel_tools(version)
    from packaging.tags import platform_tags

    prototype = library.prototype
    check_types(prototype)
    requirements = ["numpy>=1.25"]
    if any(each.dtype == "bfloat16" or each.dtype.startswith("float8") for each in prototype.arguments):
        requirements.append("ml_dtypes")
    settings = {
        "name": prototype.name,
        "version": version,
        "description": f"{prototype.name}, a kernel compiled ahead of time by blocklang",
        "platform": _platform(list(platform_tags())),
        "requirements": requirements,
    }
    with tempfile.TemporaryDirectory(prefix="blocklang-") as temporary:
        project = Path(temporary)
        (project / "setup.py").write_text(_SETUP.format(**settings), encoding="utf-8")
        _write_package(library, project / prototype.name)
        build = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
        command = [sys.executable, "-c", build, str(project / "dist")]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            said = "\n".join(done.stderr.strip().splitlines()[-8:])
            raise LinkError(
                f"setuptools could not build the wheel:\n{said}", help="pip install -U setuptools"
            )
        (built,) = (project / "dist").glob("*.whl")
        wheel = directory / built.name
        replace_file(wheel, built.read_bytes())
    return wheel


def _platform(tags: list[str]) -> str:
    """Of this machine's tags, best first, the one that names its C library and the version."""
    return next((tag for tag in tags if tag.startswith(("manylinux", "musllinux"))), tags[0])


def _write_package(library: Library, package: Path) -> None:
    package.mkdir()
    for file in (library.shared, library.header):
        (package / file.name).write_bytes(file.read_bytes())
    (package / "py.typed").touch()
    loading = Path(__file__).with_name("loading.py")
    (package / "_loading.py").write_bytes(loading.read_bytes())
    (package / "__init__.py").write_text(write_module(library.prototype), encoding="utf-8")


def write_module(prototype: Prototype) -> str:
    """The source of the package: the function with its types and docstring, and its constants."""
    return "\n".join(_module(prototype)) + "\n"


def _module(prototype: Prototype) -> Iterator[str]:
    name = prototype.name
    yield _quoted(f"{name}: {prototype.origin}, compiled ahead of time.")
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield "from pathlib import Path"
    yield "from typing import Any"
    yield ""
    yield "import numpy as np"
    yield "from numpy.typing import NDArray"
    yield ""
    yield f"from {name}._loading import Argument, Grid, Kernel"
    yield ""
    taken = (name, "cpu_level", "_kernel")
    constants = {key: value for key, value in prototype.constants.items() if key not in taken}
    yield f"__all__ = {json.dumps([name, 'cpu_level', *constants])}"
    yield ""
    yield "_kernel = Kernel("
    yield f'    Path(__file__).with_name("lib{name}.so"),'
    yield f"    {name!r},"
    yield "    ("
    for each in prototype.arguments:
        fields = (each.name, each.dtype, each.is_array, each.is_written, each.alignment)
        yield f"        Argument({', '.join(map(repr, fields))}),"
    yield "    ),"
    yield f"    {prototype.may_alias!r},"
    yield ")"
    yield ""
    yield ""
    yield f"def {name}("
    for each in prototype.arguments:
        yield f"    {each.c_name}: {_hint(each)},"
    yield "    *,"
    yield "    grid: Grid,"
    yield "    num_threads: int | None = None,"
    yield ") -> None:"
    yield textwrap.indent(_quoted("\n".join(_docstring(prototype))), "    ")
    values = ", ".join(each.c_name for each in prototype.arguments)
    yield f"    _kernel.launch([{values}], grid, num_threads)"
    yield ""
    yield ""
    yield "def cpu_level() -> str | None:"
    yield '    """The CPU level whose code runs; None: none for this CPU. BLOCKLANG_CPU lowers it."""'
    yield "    return _kernel.cpu_level"
    yield ""
    yield ""
    for constant, value in constants.items():  # last, as one may be called as what is imported
        yield f"{constant} = {value!r}"


def _hint(argument: Argument) -> str:
    if argument.is_array:
        known = re.fullmatch(r"u?int\d+|float(16|32|64)|bool", argument.dtype)
        scalar = f"np.{'bool_' if argument.dtype == 'bool' else argument.dtype}" if known else "Any"
        return f"NDArray[{scalar}]"
    return "bool" if argument.dtype == "bool" else "float" if argument.type.is_float else "int"


def _docstring(prototype: Prototype) -> Iterator[str]:
    yield f"Run {prototype.origin.partition(' ')[0]} for every program of a grid; return when all have ended."
    yield ""
    if prototype.document:
        yield inspect.cleandoc(prototype.document)
        yield ""
    yield "Args:"
    for each in prototype.arguments:
        kind = f"array of {each.dtype}" if each.is_array else each.dtype
        use = ", written" if each.is_written else ", only read" if each.is_array else ""
        of = f"; a multiple of {each.divisible}" if each.divisible > 1 else ""
        yield f"    {each.c_name}: {kind}{use}{of}."
    yield "    grid: how many programs there are: an integer, or one to three of them."
    yield "    num_threads: the most threads that work; None: one per CPU."
    yield ""
    yield "Arrays are used in place and may overlap. Addresses are not checked: what the kernel reads and"
    yield "writes for this grid must be there."
    yield ""
    yield "Raises:"
    yield "    TypeError: an argument is not of its type."
    yield "    ValueError: an array is read-only or not aligned; a number or the grid is out of range."
    yield "    MemoryError: there is not enough memory for the blocks of one program."
    yield "    RuntimeError: there is no code for this CPU."


def _quoted(text: str) -> str:
    """A docstring that holds the text, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    end = "\n" if "\n" in text else ""
    return f'"""{escaped}{end}"""'

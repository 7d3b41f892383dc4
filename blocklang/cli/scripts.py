"""Running a user's file as Python would: for `blocklang run`, and to find the kernels in it.

While it runs, `import triton` finds `blocklang.triton`, in the file and in every library that it imports.

What the file raises is the user's: our own errors are rendered with their caret, any other exception is
shown as Python shows it, without the frames of this command.
"""

from __future__ import annotations

import runpy
import sys
import tokenize
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from blocklang.diagnostics import BlocklangError, CompilationError, Location, UsageError
from blocklang.target import device_names


@dataclass(frozen=True)
class KernelReference:
    """What the user named: a file, and a kernel in it or None."""

    path: Path
    kernel: str | None

    @classmethod
    def parse(cls, text: str) -> KernelReference:
        """Read FILE or FILE:KERNEL. Raises UsageError if there is no such file."""
        file, colon, kernel = text.rpartition(":")
        if colon and not Path(text).exists() and "/" not in kernel and "\\" not in kernel:
            if not kernel.isidentifier():
                raise UsageError(
                    f"expected a kernel's name behind the colon, got {kernel!r}",
                    help="write FILE or FILE:KERNEL",
                )
            return cls(existing_file(file), kernel)
        return cls(existing_file(text), None)


def existing_file(text: str) -> Path:
    """The absolute path of a file that must exist."""
    path = Path(text)
    if path.is_dir():
        raise UsageError(f"expected a file, got the directory {text}", help="name a file in it")
    if not path.exists():
        raise UsageError(f"there is no file {text}", help=_suggest_file(path))
    return path.resolve()


def _suggest_file(path: Path) -> str:
    import difflib

    siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, siblings, n=1)
    if close:
        return f"did you mean {path.parent / close[0]}?"
    return f"paths count from {Path.cwd()}"


def check_syntax(path: Path) -> None:
    """Refuse a file that is not Python, with the caret that Python would show."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.lineno is None:
            raise UsageError(f"{path.name} is not a Python file: {error.msg}") from error
        column = max((error.offset or 1) - 1, 0)
        location = Location(str(path), error.lineno, column)
        raise CompilationError(f"not valid Python: {error.msg}", location=location) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{path.name} is not a Python file: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def run_file(path: Path, arguments: Sequence[str], name: str = "__main__") -> dict[str, Any]:
    """Execute a file under the module name `name`; its globals.

    Raises:
        BlocklangError: what the file raised, if it is ours.
        SystemExit: what the file raised, or with status 1 after showing the traceback of any other exception.
    """
    from blocklang.triton.importing import installed  # `blocklang --help` needs none of it

    check_syntax(path)
    with _as_script(path, arguments), installed():
        try:
            return runpy.run_path(str(path), run_name=name)
        except BlocklangError as error:
            _note_place(error, path)
            raise
        except Exception as error:
            show_traceback(error, path)
            if asks_for_gpu(error):
                click.echo(f"help: {REMEDY}", err=True)
            raise SystemExit(1) from error


@contextmanager
def _as_script(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """`sys.argv` and `sys.path` as they are when Python runs the file."""
    saved = sys.argv, sys.path[:]
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = saved


def show_traceback(error: BaseException, path: Path) -> None:
    """Print an exception of the user's file as Python does, from the file's own first frame on."""
    trace = error.__traceback__
    own = _frames_from(trace, path)
    lines = traceback.format_exception(type(error), error, own or trace)
    click.echo("".join(lines), err=True, nl=False)


# How PyTorch says that there is no GPU.
_NO_GPU = ("not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver", "CUDA library", "No HIP GPUs")
REMEDY = (
    "this script asks for a GPU; where cuda may mean the CPU, "
    "run it with `blocklang run --device-map cuda=cpu SCRIPT.py`"
)


def asks_for_gpu(error: BaseException) -> bool:
    """True if a script failed since PyTorch has no GPU, or on a line of it that asks for one."""
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_available():
        return False
    if any(words in str(error) for words in _NO_GPU):
        return True
    failed = traceback.extract_tb(error.__traceback__)
    return bool(failed) and isinstance(error, AssertionError) and "cuda" in (failed[-1].line or "")


def _frames_from(trace: TracebackType | None, path: Path) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename != str(path):
        trace = trace.tb_next
    return trace


def _note_place(error: BlocklangError, path: Path) -> None:
    """Say which line of the file asked for what failed, unless the error points there already."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    if lines and (error.location is None or error.location.line != lines[-1]):
        error.add_note(f"asked for at {path.name}:{lines[-1]}")


def run_script(path: Path, arguments: Sequence[str]) -> None:
    """Run a script; one that leaves with status 0 has done its work."""
    try:
        run_file(path, arguments)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            raise


def write_text(path: Path, text: str, option: str) -> None:
    """Write a report to the file that an option names.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        help = f"choose another file for {option}"
        raise UsageError(f"cannot write {path}: {error.strerror}", help=help) from error


FILE = click.Path(dir_okay=False, path_type=Path)  # that an option names to be written
Command = TypeVar("Command", bound=Callable[..., Any])


def takes_script(command: Command) -> Command:
    """A command's arguments: a script, and what follows its name."""
    return click.argument("script")(click.argument("arguments", nargs=-1)(command))


def device_option(help: str, default: str | None = None) -> Callable[[Command], Command]:
    """The option `--device`, required without a default. `{names}` in the help stands for the devices."""
    from blocklang.target.device_search import HOST, shipped_names

    return click.option(
        "--device",
        "name",
        **({"required": True} if default is None else {"default": default}),
        metavar="NAME" if default is None else f"NAME|{default}",
        shell_complete=_complete_device,
        help=help.format(names=", ".join((*shipped_names(), HOST))),
    )


def _complete_device(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    """Names of devices, for the shell."""
    return [CompletionItem(name) for name in device_names() if name.startswith(start)]

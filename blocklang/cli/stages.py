"""`blocklang ir`, `llvm` and `asm`: one kernel at the stage that is asked for.

All three find the kernel in the same way (`kernels`), then run the compiler's own stages; nothing here
transforms IR.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from blocklang.cli.ir_text import SUFFIX, read_kernel
from blocklang.cli.kernels import find_launched, find_specialised
from blocklang.cli.output import write_text
from blocklang.cli.scripts import KernelReference
from blocklang.cli.signature import parse_definitions, parse_signature
from blocklang.diagnostics import UsageError
from blocklang.ir import Kernel, print_kernel
from blocklang.ir.rewriting import clone_kernel

FRONTEND = "frontend"  # the name of the IR before any pass, beside those of the passes


@dataclass(frozen=True)
class Request:
    """Which kernel, for which types and constants, and where the text goes."""

    file: str
    arguments: tuple[str, ...]
    from_run: bool
    signature: str | None
    definitions: tuple[str, ...]
    output: Path | None
    colour: bool | None

    def find_kernel(self) -> Kernel:
        """The kernel's IR: Block IR, or what a `.blir` file holds."""
        reference = KernelReference.parse(self.file)
        if reference.path.suffix == SUFFIX:
            self._refuse_options_of_python_files()
            return read_kernel(reference.path)
        types = None if self.signature is None else parse_signature(self.signature)
        constants = parse_definitions(self.definitions)
        if not self.from_run:
            if self.arguments:
                raise UsageError(
                    f"expected one FILE, got {self.arguments[0]!r} behind it",
                    help="arguments are given to a file that is run: add --from-run",
                )
            return find_specialised(reference, types, constants)
        if types is not None or constants:
            raise UsageError(
                "--from-run takes types and constants from the file's launch; --sig and -D give others",
                help="keep one of the two",
            )
        return find_launched(reference, self.arguments)

    def _refuse_options_of_python_files(self) -> None:
        if self.from_run or self.signature is not None or self.definitions:
            raise UsageError(
                f"a {SUFFIX} file holds one kernel whose types are fixed",
                help="leave out --from-run, --sig and -D",
            )

    def write(self, text: str, language: str) -> None:
        write_text(text, language, self.output, self.colour)


signature_option = click.option(
    "--sig",
    "signature",
    metavar="TYPES",
    help="Types of the run-time arguments in order: '*fp32,*fp32:16,i32'. * is an array; "
    ":16 promises a multiple of 16.",
)
definition_option = click.option(
    "-D",
    "definitions",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a constant: -D BLOCK=1024.",
)


def takes_kernel(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: the arguments and options that say which kernel; the command gets them as one `Request`."""

    def with_request(**given: Any) -> None:
        names = ("file", "arguments", "from_run", "signature", "definitions", "output", "colour")
        command(Request(**{name: given.pop(name) for name in names}), **given)

    with_request.__doc__ = command.__doc__
    with_request.__name__ = command.__name__
    options = [
        click.argument("file", metavar="FILE[:KERNEL]"),
        click.argument("arguments", nargs=-1),
        click.option(
            "--from-run",
            is_flag=True,
            help="Run FILE (with ARGUMENTS) until it launches the kernel: types and constants are its own.",
        ),
        signature_option,
        definition_option,
        click.option(
            "-o",
            "output",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write to this file instead of standard output.",
        ),
        click.option(
            "--color/--no-color", "colour", default=None, help="Colours or none, whatever standard output is."
        ),
    ]
    decorated: Callable[..., None] = with_request
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _complete_pass(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from blocklang.passes.pipeline import pass_names

    return [CompletionItem(name) for name in (FRONTEND, *pass_names()) if name.startswith(start)]


@click.command()
@click.option(
    "--level",
    type=click.Choice(["block", "tile", "placed"]),
    help="Only the IR at the end of one level: Block IR, abstract or placed Tile IR.",
)
@click.option(
    "--after",
    metavar="PASS",
    shell_complete=_complete_pass,
    help=f"Only the IR after one pass; '{FRONTEND}' is the IR before all passes.",
)
@click.option("--all-passes", is_flag=True, help="The IR after every pass that changed something.")
@click.option("--schedule", is_flag=True, help="The choices for this CPU: loops, lanes, what is kept, tiles.")
@click.option(
    "--time", "times", is_flag=True, help="How long every stage took, from the frontend to loading."
)
@takes_kernel
def ir(
    request: Request, level: str | None, after: str | None, all_passes: bool, schedule: bool, times: bool
) -> None:
    """Print a kernel's IR: Block IR (one operation per call in the source), abstract and placed Tile IR.

    What is printed can be saved with -o and read again: FILE may be such a .blir file too.

    \b
      blocklang ir examples/softmax.py --from-run
      blocklang ir examples/softmax.py --from-run --level placed --schedule
      blocklang ir examples/matmul.py --from-run --after split_pointers
      blocklang ir examples/matmul.py --from-run 512 512 512
      blocklang ir kernels.py:scale --sig '*fp32,i32' -D BLOCK=64 --level block -o scale.blir
      blocklang ir scale.blir --level placed
    """
    if sum([level is not None, after is not None, all_passes]) > 1:
        raise UsageError("--level, --after and --all-passes exclude each other", help="keep one of them")
    if after is not None:
        _check_pass(after)
    kernel = request.find_kernel()
    if request.file.endswith(SUFFIX) and not (level or after or all_passes or schedule or times):
        request.write(print_kernel(kernel), "ir")
        return
    text = "\n".join(_sections(kernel, level, after, all_passes, schedule, times))
    request.write(text, "ir")


def _check_pass(name: str) -> None:
    from blocklang.passes.pipeline import pass_names

    names = (FRONTEND, *pass_names())
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        suggestion = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"there is no pass {name!r}", help=f"{suggestion}The passes: {', '.join(names)}")


def _sections(
    kernel: Kernel, level: str | None, after: str | None, all_passes: bool, schedule: bool, times: bool
) -> Iterator[str]:
    """The texts asked for, in the order of the stages."""
    if kernel.level != "block":
        yield _text_of_lower_level(kernel, level)
        return
    forms = _run_passes(kernel)
    if level is not None:
        yield forms.levels[level]
    elif after is not None:
        yield forms.after[after]
    elif all_passes:
        yield from _changes(forms.after)
    elif not schedule and not times:
        yield from (f"// {_TITLES[name]}\n{text}" for name, text in forms.levels.items())
    if schedule:
        yield _as_comment(forms.schedule)
    if times:
        yield _as_comment(_time_table(kernel))


_TITLES = {"block": "Block IR", "tile": "abstract Tile IR", "placed": "placed Tile IR, for this CPU"}


def _text_of_lower_level(kernel: Kernel, level: str | None) -> str:
    if level == kernel.level:
        return print_kernel(kernel)
    raise UsageError(
        f"expected a kernel of level block, for the passes; the one in the file is of level {kernel.level}",
        help="print it without options, or start from Block IR",
    )


@dataclass(frozen=True)
class _Forms:
    """Every form of a kernel: at the end of each level, after each pass, and the schedule."""

    levels: dict[str, str]
    after: dict[str, str]
    schedule: str


def _run_passes(kernel: Kernel) -> _Forms:
    from blocklang.passes.pipeline import run_pipeline
    from blocklang.target import current_target

    after = {FRONTEND: print_kernel(kernel)}
    levels: dict[str, str] = {}

    def observe(name: str, current: Kernel) -> None:
        text = print_kernel(current)
        after[name] = text
        if current.level != "tile" or "tile" not in levels:
            levels[current.level] = text

    levels["block"] = after[FRONTEND]
    run = run_pipeline(clone_kernel(kernel), current_target(), verify_each=True, observer=observe)
    return _Forms(levels, after, str(run.schedule))


def _changes(after: dict[str, str]) -> Iterator[str]:
    """The IR after each pass; a pass that changed nothing is only named."""
    before = ""
    for name, text in after.items():
        yield f"// after {name}\n{text}" if text != before else f"// after {name}: no change\n"
        before = text


def _as_comment(text: str) -> str:
    """Lines that the parser of IR skips."""
    return "".join(f"// {line}\n" for line in text.splitlines())


def _time_table(kernel: Kernel) -> str:
    from blocklang.compiler import compile_kernel
    from blocklang.runtime.launch import LoadedKernel
    from blocklang.target import current_target, require_runnable

    require_runnable(current_target())
    compiled = compile_kernel(kernel)
    started = time.perf_counter()
    LoadedKernel(compiled.abi, compiled.object_code)
    seconds = {**compiled.seconds, "load": time.perf_counter() - started}
    width = max(map(len, seconds))
    total = sum(seconds.values())
    rows = [f"{name:<{width}}  {each * 1e3:8.3f} ms  {each / total:6.1%}" for name, each in seconds.items()]
    return "\n".join([*rows, f"{'total':<{width}}  {total * 1e3:8.3f} ms"])


@click.command()
@click.option(
    "--optimised", is_flag=True, help="After LLVM's own passes, not as the code generator wrote it."
)
@takes_kernel
def llvm(request: Request, optimised: bool) -> None:
    """Print the LLVM IR that a kernel becomes.

    \b
      blocklang llvm examples/softmax.py --from-run
      blocklang llvm kernels.py:add --sig '*fp32,*fp32,*fp32,i32' -D BLOCK=1024 --optimised
    """
    compiled = _compile(request)
    request.write(compiled.optimised_llvm_ir if optimised else compiled.llvm_ir, "llvm")


@click.command()
@takes_kernel
def asm(request: Request) -> None:
    """Print the assembly of a kernel, as this CPU runs it. BLOCKLANG_CPU asks for another: x86-64, x86-64-v2,
    x86-64-v3, x86-64-v4 or aarch64, whether this machine runs it or not.

    \b
      blocklang asm examples/vector_add.py --from-run
      BLOCKLANG_CPU=aarch64 blocklang asm examples/softmax.py --from-run
      blocklang asm examples/matmul.py --from-run -o matmul.s
    """
    request.write(_compile(request).assembly, "asm")


def _compile(request: Request) -> Any:
    from blocklang.compiler import compile_kernel

    kernel = request.find_kernel()
    if kernel.level != "block":
        raise UsageError(
            f"expected a kernel of level block, and the file's is of level {kernel.level}",
            help="start from Block IR: `blocklang ir FILE --after frontend -o kernel.blir`",
        )
    return compile_kernel(kernel)


COMMANDS: Sequence[click.Command] = (ir, llvm, asm)

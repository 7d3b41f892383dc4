"""Which kernel the user means, and for which types and constants: from the file's own launches, or as told.

`--from-run` executes the file as Python would and takes the first launch of the kernel; the rest of the
file is not run if only one kernel can be meant. `--sig` and `-D` import the file without running it as a
script.
"""

from __future__ import annotations

import difflib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from blocklang.cli.scripts import KernelReference, run_file
from blocklang.cli.signature import ArgumentType
from blocklang.diagnostics import UsageError
from blocklang.ir import Kernel
from blocklang.jit import JITFunction, Launch, record_launches
from blocklang.jit.specialisation import Specialisation


class _LaunchFound(BaseException):
    """Unwinds a script whose launch has been seen. No `except Exception` of the script stops it."""


def find_launched(reference: KernelReference, arguments: Sequence[str]) -> Kernel:
    """Run the file; the Block IR of the kernel's first launch. What it prints goes to standard error.

    It runs as this CPU does, whatever BLOCKLANG_CPU says: that is for what is written of the kernel.

    Raises:
        UsageError: nothing fitting was launched, or several kernels were and none is named.
    """
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter compiles nothing

    def observe(launch: Launch) -> None:
        named = reference.kernel == launch.function.__name__
        only = reference.kernel is None and _kernels_beside(launch.function) == [launch.function]
        # Unwinding another thread would not end the script.
        if (named or only) and threading.current_thread() is threading.main_thread():
            raise _LaunchFound

    with _host_code(), record_launches(observe) as launches, redirect_stdout(sys.stderr):
        try:
            run_file(reference.path, arguments)
        except _LaunchFound:
            pass
        except SystemExit as leaving:
            if not launches and leaving.code not in (None, 0):
                raise
    launch = _choose_launch(reference, launches)
    return launch.function.block_ir(launch.specialisation)


@contextmanager
def _host_code() -> Iterator[None]:
    """Launches are compiled for this machine inside."""
    level = os.environ.pop("BLOCKLANG_CPU", None)
    try:
        yield
    finally:
        if level is not None:
            os.environ["BLOCKLANG_CPU"] = level


def _choose_launch(reference: KernelReference, launches: Sequence[Launch]) -> Launch:
    first: dict[str, Launch] = {}
    for launch in launches:
        first.setdefault(launch.function.__name__, launch)
    if not first:
        raise UsageError(
            f"{reference.path.name} launched no kernel",
            help="say what it would be launched with: --sig '*fp32,*fp32,i32' -D BLOCK=1024",
        )
    return first[_choose(reference, list(first), "launched")]


def find_specialised(
    reference: KernelReference, types: Sequence[ArgumentType] | None, constants: Mapping[str, object]
) -> Kernel:
    """Import the file; the Block IR of the kernel, specialised for the given types and constants."""
    function = find_function(reference)
    return function.block_ir(specialise(function, types, constants))


def find_function(reference: KernelReference) -> JITFunction:
    """Import the file; the kernel that is meant."""
    found = run_file(reference.path, (), name=reference.path.stem)
    kernels = {k.__name__: k for k in found.values() if _is_kernel_of(k, reference.path)}
    if not kernels:
        raise UsageError(
            f"{reference.path.name} defines no kernel", help="a kernel is a function under @blocklang.jit"
        )
    function: JITFunction = kernels[_choose(reference, list(kernels), "defines")]
    return function


def specialise(
    function: JITFunction,
    types: Sequence[ArgumentType] | None,
    constants: Mapping[str, object],
    remedy: str = "run the file's own launch with --from-run, or write them",
) -> Specialisation:
    """What the given types and constants make of a kernel.

    Args:
        remedy: what to do where there are no types; an example follows.

    Raises:
        UsageError: some are missing, or the kernel has no such parameter.
    """
    if types is None:
        raise UsageError(
            f"expected the types of {function.__name__}'s arguments, got none",
            location=function.location,
            help=f"{remedy}: {_example(function, constants)}",
        )
    _check_complete(function, types, constants)
    texts = [f"{each.type}{':16' if each.divisible == 16 else ''}" for each in types]
    return function.specialise(texts, constants)


def _is_kernel_of(value: object, path: Path) -> bool:
    return isinstance(value, JITFunction) and value.fn.__code__.co_filename == str(path)


def _kernels_beside(function: JITFunction) -> list[JITFunction]:
    """The kernels of a launched kernel's module that stand in its file, itself included."""
    file = Path(function.fn.__code__.co_filename)
    return [value for value in function.fn.__globals__.values() if _is_kernel_of(value, file)]


def _choose(reference: KernelReference, names: list[str], verb: str) -> str:
    """The kernel's name: the one the user gave, or the only one there is."""
    file = reference.path.name
    if reference.kernel is None:
        if len(names) == 1:
            return names[0]
        raise UsageError(
            f"expected one kernel, and {file} {verb} {len(names)}: {', '.join(names)}",
            help=f"name one: {file}:{names[0]}",
        )
    if reference.kernel in names:
        return reference.kernel
    close = difflib.get_close_matches(reference.kernel, names, n=1)
    listed = f"{file} {verb} {', '.join(names)}"
    help = f"did you mean {file}:{close[0]}? {listed}" if close else listed
    raise UsageError(f"there is no kernel {reference.kernel!r} in {file}", help=help)


def _runtime_parameters(function: JITFunction, constants: Mapping[str, object]) -> list[str]:
    """The parameters that `--sig` has to type: those that are not constants."""
    return [p.name for p in function.params if not p.is_constexpr and p.name not in constants]


def _missing_constants(function: JITFunction, constants: Mapping[str, object]) -> list[str]:
    return [
        p.name for p in function.params if p.is_constexpr and p.name not in constants and not _has_default(p)
    ]


def _has_default(parameter: Any) -> bool:
    from blocklang.jit.parameters import NO_DEFAULT

    return parameter.default is not NO_DEFAULT


def _check_complete(
    function: JITFunction, types: Sequence[ArgumentType], constants: Mapping[str, object]
) -> None:
    """Refuse unknown constants, missing ones and a wrong number of types; say what to add."""
    names = [p.name for p in function.params]
    for name in constants:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            raise UsageError(
                f"{function.__name__} has no parameter {name!r}",
                location=function.location,
                help=f"did you mean -D {close[0]}=...?" if close else f"its parameters: {', '.join(names)}",
            )
    missing = _missing_constants(function, constants)
    if missing:
        raise UsageError(
            f"expected values for all constants of {function.__name__}, got none for {', '.join(missing)}",
            location=function.location,
            help="add " + " ".join(f"-D {name}=..." for name in missing),
        )
    wanted = _runtime_parameters(function, constants)
    optional = [p.name for p in function.params if p.name in wanted and _has_default(p)]
    if not len(wanted) - len(optional) <= len(types) <= len(wanted):
        raise UsageError(
            f"expected {len(wanted)} types in --sig, for {', '.join(wanted)}; got {len(types)}",
            location=function.location,
            help=f"for instance {_example(function, constants)}",
        )


def _example(function: JITFunction, constants: Mapping[str, object]) -> str:
    """A command line that would do, to be adapted."""
    wanted = _runtime_parameters(function, constants)
    types = ",".join("*fp32" if "ptr" in name or name in ("x", "y", "out") else "i32" for name in wanted)
    missing = " ".join(f"-D {name}=64" for name in _missing_constants(function, constants))
    return f"--sig '{types}' {missing}".rstrip()

"""What a kernel says about its values and to the compiler: hints, compile-time checks, loop iterators.

Hints have no effect on the values; each returns its operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError, CompileTimeAssertionFailure
from blocklang.language.constexpr import describe, is_compile_time, static_int, unwrap
from blocklang.language.context import current_builder, is_silent
from blocklang.language.promises import check_assumption, check_promise
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape
from blocklang.language.tensor import tensor
from blocklang.ops.atomics import Fence


def _check_values(input: Any, values: Any, what: str) -> Any:
    plain = unwrap(values)
    numbers = plain if isinstance(plain, (tuple, list)) else (values,)
    for number in numbers:
        static_int(number, f"a value of {what}")
    rank = len(block_shape(input)) if isinstance(input, tensor) else 0
    if len(numbers) != max(rank, 1):
        raise CompilationError(f"{what} needs one value per axis: {max(rank, 1)}, got {len(numbers)}")
    if isinstance(input, tensor):
        check_promise(input, [static_int(n, f"a value of {what}") for n in numbers], what)
    return input


@builtin
def multiple_of(input: Any, values: Any) -> Any:
    """Say that the first element along each axis is a multiple of a number. Returns the operand.

    Example:
        offsets = tl.multiple_of(tl.arange(0, 8), 8)
    """
    return _check_values(input, values, "multiple_of")


@builtin
def max_contiguous(input: Any, values: Any) -> Any:
    """Say how many elements along each axis follow one another. Returns the operand.

    Example:
        offsets = tl.max_contiguous(tl.arange(0, 8), 8)
    """
    return _check_values(input, values, "max_contiguous")


@builtin
def max_constancy(input: Any, values: Any) -> Any:
    """Say how many elements along each axis are equal. Returns the operand.

    Example:
        rows = tl.max_constancy(tl.arange(0, 8) // 8, 8)
    """
    return _check_values(input, values, "max_constancy")


@builtin
def assume(cond: Any) -> None:
    """Say that a condition holds. Only `blocklang check` looks.

    Example:
        tl.assume(n > 0)
    """
    if isinstance(cond, tensor) and not block_shape(cond):
        check_assumption(cond)


@builtin
def debug_barrier() -> None:
    """No access to an array that the launch writes moves across this point, in either direction.

    Example:
        tl.debug_barrier()
    """
    current_builder().create(Fence)


@builtin
def static_assert(cond: Any, msg: Any = "") -> None:
    """Stop the compilation unless a compile-time condition holds.

    Args:
        cond: known at compile time.
        msg: what the error says.

    Example:
        tl.static_assert(BLOCK % 16 == 0, "BLOCK must be a multiple of 16")
    """
    if not is_compile_time(cond):
        raise CompilationError(
            f"static_assert needs a condition known at compile time, got {describe(cond)}",
            help="`tl.constexpr` parameters, shapes and dtypes are known; run-time values are not",
        )
    if not unwrap(cond):
        text = str(unwrap(msg))
        raise CompileTimeAssertionFailure(f"static_assert failed: {text}" if text else "static_assert failed")


@builtin
def static_print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
    """Print compile-time values, and the types of run-time values, while the kernel is compiled.

    Args:
        sep, end, file, flush: as of Python's `print`.

    Example:
        tl.static_print("BLOCK is", BLOCK)
    """
    if is_silent():
        return
    texts = [unwrap(v) for v in values]
    print(*texts, sep=str(unwrap(sep)), end=str(unwrap(end)), file=unwrap(file), flush=bool(unwrap(flush)))


@dataclass(frozen=True)
class range:
    """`for i in tl.range(...)`: as Python's `range`, with hints for the compiler that change no value.

    Args:
        arg1, arg2, step: as in `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.
        num_stages: how far ahead loads may run.
        loop_unroll_factor, disallow_acc_multi_buffer, flatten, warp_specialize, disable_licm: accepted.

    Example:
        for k in tl.range(0, 4, num_stages=2):
            total += k
    """

    arg1: Any
    arg2: Any = None
    step: Any = None
    num_stages: Any = None
    loop_unroll_factor: Any = None
    disallow_acc_multi_buffer: Any = False
    flatten: Any = False
    warp_specialize: Any = False
    disable_licm: Any = False

    def bounds(self) -> tuple[Any, Any, Any]:
        """Start, stop and step."""
        step = 1 if unwrap(self.step) is None else self.step
        if unwrap(self.arg2) is None:
            return 0, self.arg1, step
        return self.arg1, self.arg2, step

    def __iter__(self) -> Iterator[Any]:
        """What a type checker sees of the loop; in a kernel it is the frontend's and the interpreter's."""
        raise CompilationError(
            f"tl.{type(self).__name__} loops in a kernel only", help="outside of one, write Python's `range`"
        )


class static_range(range):
    """`for i in tl.static_range(...)`: the loop is unrolled, and the index is known at compile time.

    Example:
        for i in tl.static_range(4):
            total += i
    """


@dataclass(frozen=True)
class condition:
    """`while tl.condition(test):`: as `while test:`, with hints for the compiler that change no value.

    Args:
        arg1: the test.
        disable_licm: accepted.

    Example:
        while tl.condition(i < n, disable_licm=True):
            i += 1
    """

    arg1: Any
    disable_licm: Any = False

    def __bool__(self) -> bool:
        """What a type checker sees of the loop; in a kernel it is the frontend's and the interpreter's."""
        raise CompilationError("tl.condition stands after `while` only", help="write the test itself")

"""What a program prints and asserts while it runs."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import shape_of
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import logical, logical_not
from blocklang.language.constexpr import describe, static_bool, unwrap
from blocklang.language.context import current_builder
from blocklang.language.creation import arange
from blocklang.language.maths import where
from blocklang.language.memory import checked_mask
from blocklang.language.reduction import min as smallest
from blocklang.language.registry import builtin
from blocklang.language.shape import reshape
from blocklang.language.tensor import constant, tensor, to_tensor
from blocklang.ops.events import DeviceAssert, DevicePrint


@builtin
def device_print(prefix: Any, *args: Any, hex: Any = False) -> None:
    """Print values while the kernel runs: a line for each element, `pid (0, 0, 0) idx (2) prefix: 1.000000`.

    The lines appear in `sys.stdout` after the launch, in ascending order of programs and, within one, in the
    order of the program. Python's `print` is the same in a kernel.

    Args:
        prefix: a string, known at compile time. args: blocks, scalars, pointers, numbers; none at all is
        one line per program. Of several, each says which
            it is: `prefix: (operand 1) 3`.
        hex: True: show the bits, with leading zeros.

    Example:
        tl.device_print("x", tl.load(x_ptr + tl.arange(0, 8)))
    """
    text = unwrap(prefix)
    if not isinstance(text, str):
        raise CompilationError(
            f"device_print needs a string first, got {describe(prefix)}",
            help='name what is printed: `tl.device_print("x", x)`',
        )
    text = f" {text.removesuffix(' ')}" if text else ""
    shows_bits = static_bool(hex, "hex")
    builder = current_builder()
    if not args:
        builder.create(DevicePrint, title=text)
    values = [_printable(value) for value in args]
    for number, value in enumerate(values):
        operand = f"(operand {number}) " if len(values) > 1 else ""
        builder.create(DevicePrint, value.value, title=f"{text}: {operand}", hex=shows_bits)


def _printable(value: Any) -> tensor:
    if isinstance(unwrap(value), str):
        raise CompilationError(
            f"device_print cannot print the string {describe(value)}",
            help="only the first argument is a string; print strings with `tl.static_print` while compiling",
        )
    return to_tensor(value)


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """Stop the program, and let the launch fail, unless a condition holds in every lane.

    Only with `debug=True` at the launch or at `@jit`, or BLOCKLANG_DEBUG=1; otherwise nothing is checked.
    Python's `assert` on a run-time value is the same. The launch raises `DeviceAssertionError` after its
    end, for the failing program with the lowest id; other programs may have ended or not.

    Args:
        cond: a scalar or block, true where it is not 0.
        msg: a string, known at compile time.
        mask: int1, broadcast with the condition; where it is false, nothing is checked.

    Example:
        tl.device_assert(n >= 0, "n is negative")
    """
    text = unwrap(msg)
    if not isinstance(text, str):
        raise CompilationError(f"the message of an assertion must be a string, got {describe(msg)}")
    holds = to_tensor(cond)
    if not holds.dtype.is_int1():
        holds = holds != 0
    live = checked_mask(mask)
    if live is not None:
        holds = logical("or", holds, logical_not(live))
    if current_builder().debug:
        assert_holds(holds, text)


def assert_holds(holds: tensor, text: str) -> None:
    """The assertion that bools hold in every lane, whether the launch debugs or not."""
    shape = shape_of(holds.value.type)
    current_builder().create(DeviceAssert, _first_failing(holds).value, message=text, shape=shape)


def _first_failing(holds: tensor) -> tensor:
    """The number of the first lane that is false, in row-major order, or the number of lanes."""
    lanes = 1
    for extent in shape_of(holds.value.type):
        lanes *= extent
    everything = constant(lanes, tl.int32)
    if not shape_of(holds.value.type):
        return where(holds, everything, constant(0, tl.int32))
    flat = reshape(holds, (lanes,))
    first: tensor = smallest(where(flat, everything, arange(0, lanes)), 0)
    return first

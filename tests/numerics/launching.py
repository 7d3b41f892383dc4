"""Launch a kernel in both modes, between canaries, and hand back what it wrote.

Not a reference of results: `expected` is. Every launch checks
- that the compiled kernel and the interpreter leave the same bits in every array, a NaN equal to every NaN;
- that the bytes before and after each array, and every input, are as they were;
- that a bool is stored as 0 or 1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import blocklang as bl
from tests.numerics.values import FLOAT8, NUMPY_DTYPES

Array = npt.NDArray[Any]

GUARD_BYTES = 128
CANARY = 0xC5
UNTOUCHED = 0xA7  # what every byte of an output is before the launch


_EXTENDED = {NUMPY_DTYPES[name] for name in ("bf16", *FLOAT8)}


@dataclass(frozen=True)
class Out:
    """An array that the kernel writes; each byte is `UNTOUCHED` before, or `contents` are given."""

    shape: tuple[int, ...]
    dtype: str
    contents: Array | None = None


class Guarded:
    """An array in the middle of canaries.

    Args:
        misaligned: by how many bytes the array is off its alignment.
    """

    def __init__(self, contents: Array, misaligned: int = 0) -> None:
        size, start = contents.nbytes, GUARD_BYTES + misaligned
        self._bytes = np.full(size + 2 * GUARD_BYTES + misaligned, CANARY, np.uint8)
        self._inner = slice(start, start + size)
        self.array: Array = self._bytes[self._inner].view(contents.dtype).reshape(contents.shape)
        self.array[...] = contents

    def is_whole(self) -> bool:
        """True if no byte around the array has changed."""
        outside = np.delete(self._bytes, self._inner)
        return bool((outside == CANARY).all())


def raw(array: Array) -> Array:
    """The bytes of each element, along a new last axis."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, array.dtype.itemsize)


def is_untouched(array: Array) -> npt.NDArray[np.bool_]:
    """For each element of an output, whether the launch left it alone."""
    return np.asarray((raw(array) == UNTOUCHED).all(axis=-1))


def comparable(array: Array) -> Array:
    """The bits of the elements as unsigned integers, all NaN the same."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape).copy()
    if array.dtype.kind == "f" or array.dtype in _EXTENDED:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            bits[np.isnan(array.astype(np.float64))] = ~bits.dtype.type(0)
    return np.asarray(bits)


def assert_same_bits(actual: Array, expected: Array, what: str = "") -> None:
    """Equal dtype, shape and bits; a NaN equals every NaN. Names the first lane that differs."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), what
    wrong = np.argwhere(comparable(actual) != comparable(expected))
    if len(wrong):
        lane = tuple(int(i) for i in wrong[0])
        raise AssertionError(
            f"{what}: {len(wrong)} of {actual.size} elements differ, first at {lane}: "
            f"{actual[lane]!r} is not {expected[lane]!r}"
        )


@functools.cache
def interpreted(kernel: bl.JITFunction) -> bl.JITFunction:
    """The same kernel in interpreter mode."""
    return bl.jit(interpret=True)(kernel.fn)


def launch_both(
    kernel: bl.JITFunction, grid: Any, *arguments: Any, misaligned: int = 0, **constants: Any
) -> list[Array]:
    """Launch compiled and interpreted, and check what the module's docstring says.

    Args:
        arguments: arrays that are only read, `Out`s, and numbers.
        misaligned: passed to every array.

    Returns:
        What each `Out` holds afterwards.
    """
    native, meaning = (
        _launch(k, grid, arguments, misaligned, constants) for k in (kernel, interpreted(kernel))
    )
    for position, (one, other) in enumerate(zip(native, meaning, strict=True)):
        assert_same_bits(one, other, f"output {position}, compiled against interpreted")
    return native


def launch_one(kernel: bl.JITFunction, grid: Any, *arguments: Any, **constants: Any) -> Array:
    """`launch_both` of a kernel with one output."""
    (output,) = launch_both(kernel, grid, *arguments, **constants)
    return output


def launch_in_mode(
    mode: str, kernel: bl.JITFunction, grid: Any, *arguments: Any, misaligned: int = 0, **constants: Any
) -> list[Array]:
    """What each `Out` holds after a launch in one mode, "compiled" or "interpreted", with the same checks."""
    chosen = kernel if mode == "compiled" else interpreted(kernel)
    return _launch(chosen, grid, arguments, misaligned, constants)


def _launch(
    kernel: bl.JITFunction,
    grid: Any,
    arguments: tuple[Any, ...],
    misaligned: int,
    constants: dict[str, Any],
) -> list[Array]:
    held = [_guarded(a, misaligned) for a in arguments]
    with np.errstate(all="raise"):  # the interpreter silences what it means to do
        kernel[grid](*(h.array if isinstance(h, Guarded) else h for h in held), **constants)
    outputs = []
    for position, (given, guarded) in enumerate(zip(arguments, held, strict=True)):
        if not isinstance(guarded, Guarded):
            continue
        assert guarded.is_whole(), f"bytes around argument {position} have changed"
        if isinstance(given, Out):
            _check_bools(guarded.array)
            outputs.append(guarded.array.copy())
        else:
            assert (raw(guarded.array) == raw(given)).all(), f"input {position} has changed"
    return outputs


def _guarded(argument: Any, misaligned: int) -> Any:
    if isinstance(argument, Out):
        dtype = NUMPY_DTYPES[argument.dtype]
        contents = argument.contents
        if contents is None:
            count = int(np.prod(argument.shape)) * dtype.itemsize
            contents = np.full(count, UNTOUCHED, np.uint8).view(dtype).reshape(argument.shape)
        return Guarded(contents, misaligned)
    return Guarded(argument, misaligned) if isinstance(argument, np.ndarray) else argument


def _check_bools(array: Array) -> None:
    if array.dtype == np.bool_:
        assert np.isin(raw(array), (0, 1, UNTOUCHED)).all(), "a bool is stored as 0 or 1"

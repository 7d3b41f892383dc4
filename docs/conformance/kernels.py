"""Probes that launch a kernel: its body is given as text, and it runs compiled and interpreted."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import blocklang as bl
from blocklang.diagnostics import BlocklangError
from docs.conformance.model import Times
from docs.conformance.sources import define

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "int1": np.dtype(np.bool_),
    **{f"int{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
# One program's lanes when a probe is checked, and when it is timed.
LANES, PROGRAMS = 64, 2
TIMED_LANES, TIMED_PROGRAMS = 8192, 8
# A launch does the work so often that it takes this long: what a launch itself costs is not a lane's.
_SECONDS, _MOST_REPEATS, _MEASUREMENTS = 5e-4, 64, 8
_INPUTS = "xyz"


def sample(dtype: str, count: int, seed: int) -> Array:
    """Ordinary numbers of a type: floats in [0.1, 2.1), integers in [1, 50) or (-50, 50)."""
    generator = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    if dtype == "int1":
        return generator.integers(0, 2, count).astype(np.bool_)
    if kind.kind in "iu":
        low = -50 if kind.kind == "i" else 1
        values = generator.integers(low, 50, count)
        return np.where(values == 0, 7, values).astype(kind)
    return (generator.random(count) * 2 + 0.1).astype(kind)


def comparable(array: Array) -> Array:
    """Bits as integers, all NaN alike."""
    array = np.ascontiguousarray(array)
    bits: Array = array.view(f"u{array.dtype.itemsize}").copy()
    if array.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            bits[np.isnan(array.astype(np.float64))] = 0
    return bits


@dataclass(frozen=True)
class Kernel:
    """A kernel around `code`, which computes `r` from `x`, `y`, `z`, one number of each input a lane.

    Attributes:
        code: statements; `X`, `Y`, `Z`, `O` are pointers, `i` the lanes' indices, `N` their number.
        inputs: dtypes of x, y, z, or arrays instead of samples.
        out: dtype of the result.
        shape: "lanes", "programs" (one number each) or the shape of one program's result.
        wanted: the reference: arrays (programs, N) to an array of the result's shape. With a shape of its
            own, there is one program, and the arrays have one axis. None: both modes agree, that is all.
        rtol: how far a float may be from the reference; 0 is bit for bit.
        numpy: what to time beside the kernel; True is `wanted`.
        prelude: text of the module before the kernel.
        stores: the code stores by itself; `O` has `shape`, filled with 0.
        options: keywords of the launch.
    """

    code: str
    inputs: tuple[str | Array, ...] = ("fp32",)
    out: str = "fp32"
    shape: str | tuple[int, ...] = "lanes"
    wanted: Callable[..., Any] | None = None
    rtol: float = 0.0
    numpy: Callable[..., Any] | bool = False
    prelude: str = ""
    stores: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = True
    arguments: str = ""
    values: tuple[Any, ...] = ()

    def source(self) -> str:
        """The text of the module."""
        names = _INPUTS[: len(self.inputs)]
        pointers = "".join(f"{n.upper()}, " for n in names)
        loads = "".join(
            f"    {n} = tl.load({n.upper()} + i)\n" for n in names if re.search(rf"\b{n}\b", self.code)
        )
        code = textwrap.indent(textwrap.dedent(self.code).strip(), "    ")
        arguments = f"{self.arguments}, " if self.arguments else ""
        return (
            f"{textwrap.dedent(self.prelude)}\n\n"
            f"def kernel({pointers}O, {arguments}N: tl.constexpr):\n"
            f"    i = tl.program_id(0) * N + tl.arange(0, N)\n{loads}{code}\n{self._store()}"
        )

    def _store(self) -> str:
        if self.stores:
            return ""
        if self.shape == "lanes":
            return "    tl.store(O + i, r)\n"
        if self.shape in ("programs", ()):
            return "    tl.store(O + tl.program_id(0), r)\n"
        address, stride = "O", 1
        rank = len(self.shape)
        for axis in reversed(range(rank)):
            index = ", ".join(":" if a == axis else "None" for a in range(rank))
            address += f" + tl.arange(0, {self.shape[axis]})[{index}] * {stride}"
            stride *= int(self.shape[axis])
        return f"    tl.store({address}, r)\n"

    def arrays(self, programs: int, lanes: int) -> list[Array]:
        """The inputs."""
        count = programs * lanes
        return [
            sample(v, count, seed) if isinstance(v, str) else np.resize(v, count) if v.size < count else v
            for seed, v in enumerate(self.inputs)
        ]

    def _result(self, programs: int, lanes: int) -> Array:
        shape = {"lanes": (programs, lanes), "programs": (programs,)}.get(self.shape, self.shape)  # type: ignore[arg-type]
        return np.zeros(shape, DTYPES[self.out])

    @property
    def _programs(self) -> int:
        return PROGRAMS if isinstance(self.shape, str) else 1

    def check(self) -> None:
        """Both modes, and the reference."""
        results = []
        for interpret in (False, True):
            kernel = bl.jit(strict=self.strict, interpret=interpret)(define(self.source())["kernel"])
            arrays = self.arrays(self._programs, LANES)
            result = self._result(self._programs, LANES)
            kernel[(self._programs,)](*arrays, result, *self.values, N=LANES, **self.options)
            results.append(result)
        native, interpreted = results
        assert (comparable(native) == comparable(interpreted)).all(), "the modes differ"
        if self.wanted is None:
            return
        arrays = self.arrays(self._programs, LANES)
        if isinstance(self.shape, str):
            arrays = [a.reshape(self._programs, -1) for a in arrays]
        with np.errstate(all="ignore"):
            wanted = np.asarray(self.wanted(*arrays))
        assert wanted.shape == native.shape, f"the reference has shape {wanted.shape}"
        if self.rtol:
            np.testing.assert_allclose(
                native.astype(np.float64), wanted.astype(np.float64), self.rtol, self.rtol
            )
        else:
            np.testing.assert_array_equal(comparable(native), comparable(wanted.astype(native.dtype)))

    def time(self) -> Times | None:
        """2^16 lanes on one thread; NumPy's function on the same arrays."""
        if not isinstance(self.shape, str) or self.stores or "print(" in self.code:
            return None
        programs, lanes = TIMED_PROGRAMS, TIMED_LANES
        kernel = bl.jit(strict=self.strict)(define(self.source())["kernel"])
        arrays = [a.reshape(programs, -1) for a in self.arrays(programs, lanes)]
        result = self._result(programs, lanes)
        options = {**self.options, "num_threads": 1}

        def launch(repeats: int) -> None:
            kernel[(programs, repeats)](*arrays, result, *self.values, N=lanes, **options)

        function = self.wanted if self.numpy is True else self.numpy or None
        with np.errstate(all="ignore"):
            launch(1)
            once = min(_seconds(lambda: launch(1)) for _ in range(3))
            repeats = max(1, min(_MOST_REPEATS, int(_SECONDS / once)))
            # Twice the work in one launch less the work of another: the launches themselves drop out.
            one, two, theirs = [], [], []
            for _ in range(_MEASUREMENTS):
                one.append(_seconds(lambda: launch(repeats)))
                two.append(_seconds(lambda: launch(2 * repeats)))
                if function:
                    theirs.append(_seconds(lambda: function(*arrays)))
        ours = max(min(two) - min(one), 0.0) / repeats
        scale = 1e9 / (programs * lanes)
        return Times(ours * scale, min(theirs) * scale if theirs else None)


def _seconds(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


@dataclass(frozen=True)
class Refuses:
    """A rule that forbids something: the kernel is refused, in words that match `message`."""

    kernel: Kernel
    message: str

    def check(self) -> None:
        """Refused by the compiler."""
        try:
            self.kernel.check()
        except BlocklangError as error:
            text = str(error)
        except (TypeError, ValueError, NameError, KeyError, OverflowError) as error:
            text = str(error)
        else:
            raise AssertionError("it is accepted")
        assert re.search(self.message, text), text

    def time(self) -> Times | None:
        """Nothing runs."""
        return None


def ulp(dtype: str, count: float = 4) -> float:
    """A relative tolerance of a few units in the last place."""
    return math.ldexp(count, {"fp64": -52, "fp32": -23, "fp16": -10, "bf16": -7}[dtype])

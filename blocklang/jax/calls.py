"""One call of an operator with arrays of known shapes: the compiled launch behind XLA's custom call.

The arrays may have leading axes of a batch, by levels: each level has an extent, and says which inputs have
its axis. An input without it is the same for all items. The kernel runs for every item, in one launch: the
batch is further extents of the grid.

Where machine code alone cannot do it (a kernel that prints, checks or is interpreted), the launch is a
callback into Python.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from blocklang.diagnostics import CompilationError, LaunchError
from blocklang.jax.manual_axes import shape_like
from blocklang.jit.function import Executable, PlannedLaunch
from blocklang.jit.functional import KernelFunction, caller_location
from blocklang.runtime.arrays import element_type_of
from blocklang.runtime.foreign_call import Plan, Pointer, XlaHandler, is_supported, shared_handler
from blocklang.runtime.threads import get_num_threads

TARGET = "blocklang_launch"

_executables: dict[int, Executable] = {}  # XLA may call what it compiled as long as the process lives
_registered: list[XlaHandler] = []
_lock = threading.Lock()


class Level(NamedTuple):
    """One axis of a batch: its extent, and which inputs have it."""

    extent: int
    has_axis: tuple[bool, ...]


class _Mock:
    """Stands for an array of which only type and shape are known; its address is no multiple of 16."""

    _numbers = itertools.count(1)

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype).name
        self._address = (next(self._numbers) << 44) + 8

    def data_ptr(self) -> int:
        return self._address

    def stride(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))


def call(
    function: KernelFunction,
    grid: Any,
    statics: Mapping[str, Any],
    names: Sequence[str],
    arrays: Sequence[Any],
    levels: Sequence[Level],
) -> tuple[Any, ...]:
    """The outputs, then the updated inputs, of an operator for every item of a batch.

    Args:
        statics: inputs that are numbers.
        names, arrays: the other inputs.
        levels: of the batch, outermost first.

    Raises:
        LaunchError: an array cannot be an argument, or its shape is not known.
    """
    items = {
        name: _item_of(function, name, array, sum(level.has_axis[index] for level in levels))
        for index, (name, array) in enumerate(zip(names, arrays, strict=True))
    }
    seen = {**items, **statics}
    made = function.outputs_for(seen, lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    _check_outputs(function, made)
    values = {**statics, **function.values_for(seen)}
    batch = tuple(level.extent for level in levels)
    results = [*made.values(), *(items[name] for name in function.updates)]
    shapes = [
        shape_like((*batch, *r.shape), r.dtype, arrays[0])
        if arrays
        else jax.ShapeDtypeStruct((*batch, *r.shape), r.dtype)
        for r in results
    ]
    mocks = {name: _Mock(a.shape, a.dtype) for name, a in {**items, **made}.items()}
    planned = _planned(function, grid, {**mocks, **values})
    if planned is None:
        launch = _PythonLaunch(
            function, grid, values, tuple(names), tuple(made), tuple(results), tuple(levels)
        )
        return tuple(jax.pure_callback(launch, shapes, *arrays))
    strides = {
        name: _strides(items[name], levels, [level.has_axis[index] for level in levels])
        for index, name in enumerate(names)
    } | {name: _strides(each, levels, [True] * len(levels)) for name, each in made.items()}
    number = _known_plan(planned, names, [*made, *function.updates], strides, items, batch)
    aliases = {names.index(name): len(made) + k for k, name in enumerate(function.updates)}
    custom_call = jax.ffi.ffi_call(TARGET, shapes, input_output_aliases=aliases)
    return tuple(custom_call(*arrays, plan=np.int64(number)))


def _item_of(function: KernelFunction, name: str, array: Any, axes: int) -> Any:
    shape = tuple(array.shape)[axes:]
    if not all(isinstance(extent, int) for extent in array.shape):
        raise function.error(
            f"input {name!r} has shape {tuple(map(str, array.shape))}, which is not known while tracing",
            "a kernel is compiled and its grid chosen for known shapes: export the function with them",
            caller_location(),
        )
    if element_type_of(np.dtype(array.dtype)) is None:
        raise function.error(
            f"input {name!r} has elements of {array.dtype}, which have no meaning in a kernel",
            "convert it with `.astype(...)`; complex numbers are two arrays, `.real` and `.imag`",
            caller_location(),
        )
    return jax.ShapeDtypeStruct(shape, array.dtype)


def _check_outputs(function: KernelFunction, made: Mapping[str, Any]) -> None:
    for name, shape in made.items():
        if not (hasattr(shape, "shape") and hasattr(shape, "dtype")):
            raise function.error(
                f"output {name!r} is a {type(shape).__name__}, and has to be a shape with a dtype",
                "return `jax.ShapeDtypeStruct(shape, dtype)`",
            )


def _planned(function: KernelFunction, grid: Any, arguments: Mapping[str, Any]) -> PlannedLaunch | None:
    """The compiled launch; None if Python has to make it."""
    kernel = function.kernel
    try:
        if kernel.interpret:
            return None
        planned = kernel.plan(grid, **arguments)
    except LaunchError as error:
        raise function.error(error.message, error.help, caller_location()) from None
    except CompilationError as error:
        place = caller_location()
        if place is not None:
            error.notes.append(f"called at {place}")
        raise
    for name in sorted(planned.written - {*function.outputs, *function.updates}):
        raise function.error(
            f"{kernel.signature.name} stores to input {name!r}, and arrays of JAX do not change",
            f"write updates=({name!r},): the operator then returns what {name!r} becomes",
        )
    abi = planned.executable.compiled.abi
    return None if abi.events or abi.bounds or not is_supported() else planned


def _strides(item: Any, levels: Sequence[Level], has_axis: Sequence[bool]) -> tuple[int, ...]:
    """From item to item, in bytes, per level; 0 where the array has no such axis."""
    size = math.prod(item.shape) * np.dtype(item.dtype).itemsize
    strides: list[int] = []
    for level, has in zip(reversed(levels), reversed(has_axis), strict=True):
        strides.append(size if has else 0)
        size *= level.extent if has else 1
    return tuple(reversed(strides))


def _known_plan(
    planned: PlannedLaunch,
    names: Sequence[str],
    results: Sequence[str],
    strides: Mapping[str, tuple[int, ...]],
    items: Mapping[str, Any],
    batch: tuple[int, ...],
) -> int:
    """The number under which the handler finds this launch."""
    buffers = {name: index for index, name in enumerate(names)}
    buffers |= {name: -1 - index for index, name in enumerate(results)}
    pointers = tuple(
        Pointer(slot, buffers[value], strides[value])
        for slot, value in enumerate(planned.slots)
        if isinstance(value, str)
    )
    copies = tuple(
        (names.index(name), buffers[name], math.prod(batch) * _bytes(items[name]))
        for name in results
        if name in items
    )
    compiled = planned.executable.compiled
    plan = Plan(
        entry=planned.executable.loaded.entry,
        slots=tuple(0 if isinstance(value, str) else value for value in planned.slots),
        pointers=pointers,
        grid=planned.grid,
        batch=batch,
        scratch_bytes=compiled.abi.scratch_bytes,
        copies=copies,
        arguments=len(names),
        results=len(results),
        threads=get_num_threads(),
    )
    digest = hashlib.sha256(compiled.object_code)
    digest.update(repr(plan._replace(entry=0)).encode())
    number = int.from_bytes(digest.digest()[:8], "little") >> 1
    _executables.setdefault(number, planned.executable)
    _handler().add(number, plan._replace(entry=_executables[number].loaded.entry))
    return number


def _bytes(item: Any) -> int:
    return int(math.prod(item.shape) * np.dtype(item.dtype).itemsize)


def _handler() -> XlaHandler:
    handler = shared_handler()
    with _lock:
        if _registered:
            return handler
        handler.answer(_interface_version())
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler.address)
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(function), platform="cpu")
        _registered.append(handler)
    return handler


def _interface_version() -> int:
    """The minor version of the foreign function interface of this XLA, as its header has it."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text(encoding="utf-8"))
    if found is None:
        raise RuntimeError(f"{header} states no version of XLA's foreign function interface")
    return int(found[1])


@dataclass(frozen=True, eq=False)  # told by identity: JAX hashes it
class _PythonLaunch:
    """The launches of a batch through Python, on NumPy's arrays."""

    function: KernelFunction
    grid: Any
    values: Mapping[str, Any]
    names: tuple[str, ...]
    made: tuple[str, ...]
    results: tuple[Any, ...]
    levels: tuple[Level, ...]

    def __call__(self, *arrays: Any) -> list[Any]:
        extents = [level.extent for level in self.levels]
        given = dict(zip(self.names, map(np.asarray, arrays), strict=True))
        made = [np.empty((*extents, *r.shape), r.dtype) for r in self.results]
        outputs = dict(zip((*self.made, *self.function.updates), made, strict=True))
        for name in self.function.updates:
            outputs[name][...] = given[name]
        for item in itertools.product(*map(range, extents)):
            arguments = {name: out[item] for name, out in outputs.items()}
            for index, name in enumerate(self.names):
                at = tuple(k for k, level in zip(item, self.levels, strict=True) if level.has_axis[index])
                arguments.setdefault(name, given[name][at])
            arguments = {n: v if isinstance(v, np.ndarray) else np.asarray(v) for n, v in arguments.items()}
            self.function.kernel[self.grid](**arguments, **self.values)
        return made

"""Warm launches without Python: launch tables for `codegen.launcher`, made from one done in Python.

After `WARM_LAUNCHES` launches through Python a version gets a table for the form of its call: how many
arguments by position, which by name. The callables of a kernel are a chain, the newest table first,
`JITFunction._launch` at the end; each hands on what does not fit it.

What a table cannot say stays in Python: arrays that are neither NumPy's nor PyTorch's, NumPy scalars,
subclasses of int or float, u64, annotated types other than integers, `num_threads=`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from blocklang.codegen.launcher import (
    ARRAY,
    BOOL,
    CONSTANT_INTEGER,
    FLOAT,
    GUARD,
    IDENTICAL,
    INTEGER,
    LAUNCHER,
    MAXIMUM_ARGUMENTS,
    TABLE,
    TENSOR,
    TENSORS,
    PythonLayout,
    emit_launcher,
)
from blocklang.ir.types import F32, I1, I32, I64, ScalarType
from blocklang.jit.aliasing import CLASSES
from blocklang.jit.capture import Captured
from blocklang.jit.parameters import Parameter
from blocklang.jit.specialisation import ConstantSpec, Spec, TypedSpec
from blocklang.runtime.arena import Arena
from blocklang.runtime.fastcall import (
    NativeFunction,
    array_layout_holds,
    is_supported_interpreter,
    tensor_fields,
    tensor_layout_holds,
)
from blocklang.runtime.launch import WAKE_NS, LoadedKernel
from blocklang.runtime.loader import LoadedObject, assemble

WARM_LAUNCHES = 16
MAXIMUM_TABLES = 8  # per kernel: a chain is searched from its start
_WRITEABLE = 0x0400  # NPY_ARRAY_WRITEABLE

_enabled = ctypes.c_int64(1)
_pauses = 0
_lock = threading.Lock()


@contextmanager
def native_launches_paused() -> Iterator[None]:
    """Send every launch of the process through Python while the context lasts."""
    _count_pauses(+1)
    try:
        yield
    finally:
        _count_pauses(-1)


def _count_pauses(change: int) -> None:
    global _pauses
    with _lock:
        _pauses += change
        _enabled.value = int(_pauses == 0)


class _Launcher:
    """The native launcher of this process, compiled when the first kernel is warm."""

    def __init__(self) -> None:
        layout = PythonLayout()
        self.bind: Callable[[object], Callable[..., Any]] | None = None
        if not (is_supported_interpreter() and hasattr(time, "CLOCK_MONOTONIC") and _layout_holds(layout)):
            return
        self._code = LoadedObject(assemble(emit_launcher(layout, time.CLOCK_MONOTONIC)), [LAUNCHER])
        self._function = NativeFunction(LAUNCHER, self._code.address(LAUNCHER))
        self.bind = self._function.bind


def _layout_holds(layout: PythonLayout) -> bool:
    return array_layout_holds(
        object_type=layout.object_type,
        data=layout.array_data,
        rank=layout.array_rank,
        shape=layout.array_shape,
        strides=layout.array_strides,
        dtype=layout.array_dtype,
        flags=layout.array_flags,
    )


_launcher: _Launcher | None = None


def _shared_launcher() -> _Launcher:
    """The launcher; `_lock` is held."""
    global _launcher
    if _launcher is None:
        _launcher = _Launcher()
    return _launcher


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class WarmLaunch(NamedTuple):
    """What a table is made from: one launch that Python has done.

    Attributes:
        args, kwargs: the launch's arguments as they were given, options included.
        parameters, values, specs: the kernel's parameters, the bound arguments, their specs.
        options: the launch options as given.
        written: names of the arguments that the kernel stores to.
        alias: alias class of its arrays.
        slot_positions: per slot, the position of its parameter.
        captured: the globals and closure variables that were compiled in.
        result: what the launch returns.
    """

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    parameters: Sequence[Parameter]
    values: Sequence[Any]
    specs: Sequence[Spec]
    options: Mapping[str, Any]
    written: frozenset[str]
    alias: str
    slot_positions: Sequence[int]
    captured: Captured
    loaded: LoadedKernel
    result: object

    @property
    def form(self) -> tuple[object, ...]:
        """What tells tables of one version apart: the form of the call, the alias class of its arrays, its
        options, the dtypes' objects.
        """
        options = [repr(self.options[name]) for name in self.kwargs if name in self.options]
        identical = [id(v.dtype) for v in self.values if type(v) is np.ndarray]
        kinds = [_tensor_kind(v) for v in self.values if _is_tensor(v)]
        return (len(self.args), tuple(self.kwargs), self.alias, *options, *identical, *kinds)


class _Unsuitable(Exception):
    """The launch has an argument that a table cannot describe."""


class LaunchTable:
    """A launch table and everything that its addresses point at."""

    def __init__(self, launch: WarmLaunch) -> None:
        # The arguments themselves are not kept: a table must not keep a user's arrays alive.
        self._kept: list[object] = [launch.loaded, launch.result, launch.captured, list(launch.kwargs)]
        _refuse_what_no_table_can_say(launch)
        self._arena = Arena(launch.loaded.abi.scratch_bytes)
        guards, arrays = self._guards(launch)
        pairs = [
            number
            for (i, one), (j, other) in combinations(enumerate(arrays), 2)
            if one in launch.written or other in launch.written
            for number in (i, j)
        ]
        captured = [field for record in launch.captured.native_records() for field in record]
        meta = self._meta(launch)
        fields: dict[str, int] = {
            "enabled": ctypes.addressof(_enabled),
            "positional": len(launch.args) + 2,
            "keywords": len(launch.kwargs),
            "keyword_names": self._array([id(name) for name in launch.kwargs]),
            "guards": self._array([field for guard in guards for field in guard]),
            "guard_count": len(guards),
            "captured": self._array(captured),
            "captured_count": len(captured) // 3,
            "meta": self._array(meta),
            "meta_count": len(meta) // 3,
            "pairs": self._array(pairs),
            "pair_count": len(pairs) // 2,
            "alias": CLASSES.index(launch.alias),
            "array_type": id(np.ndarray),
            "entry": launch.loaded.entry,
            "scratch": self._arena.address,
            "needs_scratch": int(launch.loaded.abi.scratch_bytes > 0),
            "program_ns": ctypes.addressof(launch.loaded.program_ns),
            "longest_ns": int.from_bytes(ctypes.c_double(WAKE_NS), "little"),
            "result": id(launch.result),
        }
        self._table = (ctypes.c_int64 * len(TABLE))(*(fields[name] for name in TABLE))
        self.address = ctypes.addressof(self._table)

    def renew_scratch(self) -> None:
        """In a forked child: a thread of the parent may have held the arena."""
        self._table[TABLE.index("scratch")] = self._arena.address

    def _array(self, numbers: Sequence[int]) -> int:
        memory = (ctypes.c_int64 * len(numbers))(*numbers)
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _guards(self, launch: WarmLaunch) -> tuple[list[list[int]], list[str]]:
        """One guard per argument given, and the names of the arrays, in order."""
        given = [*launch.parameters[: len(launch.args)]]
        guards: list[list[int]] = []
        arrays: list[str] = []
        slot_of = {position: slot for slot, position in enumerate(launch.slot_positions)}
        by_name = {p.name: p for p in launch.parameters}
        for parameter in [*given, *(by_name.get(name) or name for name in launch.kwargs)]:
            if isinstance(parameter, str):
                guards.append(_option_guard(parameter, launch.options[parameter]))
                self._kept.append(launch.options[parameter])
                continue
            spec, value = launch.specs[parameter.position], launch.values[parameter.position]
            guard = _guard(parameter, spec, value, parameter.name in launch.written)
            if guard["kind"] in (ARRAY, TENSOR):
                arrays.append(parameter.name)
                self._kept.append(value.dtype if guard["kind"] == ARRAY else type(value))
            elif guard["kind"] == IDENTICAL:
                self._kept.append(value)
            guard["slot"] = slot_of.get(parameter.position, -1)
            guards.append([guard.get(name, 0) for name in GUARD])
        return guards, arrays

    def _meta(self, launch: WarmLaunch) -> list[int]:
        """What a grid function is given: (name, index into the launcher's arguments or -1, default value)."""
        names = [p.name for p in launch.parameters[: len(launch.args)]] + list(launch.kwargs)
        fields: list[int] = []
        for index, name in enumerate(names):
            fields += [self._name(name), index + 2, 0]
        for parameter in launch.parameters:
            if parameter.name not in names:
                fields += [self._name(parameter.name), -1, id(parameter.default)]
        return fields

    def _name(self, name: str) -> int:
        self._kept.append(name)
        return id(name)


def _refuse_what_no_table_can_say(launch: WarmLaunch) -> None:
    """Refuse defaults that fill a slot, too many arguments, and captured values that can change."""
    given = {p.name for p in launch.parameters[: len(launch.args)]} | launch.kwargs.keys()
    if any(launch.parameters[position].name not in given for position in launch.slot_positions):
        raise _Unsuitable
    if len(launch.parameters) + len(launch.kwargs) + 2 > MAXIMUM_ARGUMENTS:
        raise _Unsuitable
    if not launch.captured.is_told_by_identity:
        raise _Unsuitable
    if launch.loaded.abi.events or launch.loaded.abi.bounds:  # they are said, and found, by Python
        raise _Unsuitable


def _option_guard(name: str, value: object) -> list[int]:
    if name == "num_threads":
        raise _Unsuitable
    guard = _constant_guard(value)
    guard["slot"] = -1
    return [guard.get(field, 0) for field in GUARD]


def _constant_guard(value: object) -> dict[str, int]:
    if type(value) is int and -(2**63) <= value < 2**63:
        return {"kind": CONSTANT_INTEGER, "low": value}
    if isinstance(value, list):
        raise _Unsuitable  # the same list may hold something else next time
    return {"kind": IDENTICAL, "expected": id(value)}


def _guard(parameter: Parameter, spec: Spec, value: Any, is_written: bool) -> dict[str, int]:
    if isinstance(spec, ConstantSpec):
        return _constant_guard(value)
    assert isinstance(spec, TypedSpec)
    exact = parameter.do_not_specialize or parameter.do_not_specialize_on_alignment
    divisible = 2 if exact else int(spec.divisible)
    if type(value) is np.ndarray:
        return {
            "kind": ARRAY,
            "expected": id(value.dtype),
            "flags": _WRITEABLE if is_written else 0,
            "divisible": divisible,
            "size": value.dtype.itemsize,
        }
    if _is_tensor(value):
        type_, elements, kind = _tensor_kind(value)
        return {
            "kind": TENSOR,
            "expected": id(type_),
            "low": elements,
            "high": kind - 2**64 if kind >= 2**63 else kind,
            "divisible": divisible,
            "size": value.element_size(),
        }
    if type(value) is int and isinstance(spec.type, ScalarType):
        return _integer_guard(parameter, spec.type, divisible)
    if type(value) is float and spec.type == F32:
        return {"kind": FLOAT}
    if type(value) is bool and spec.type == I1:
        return {"kind": BOOL}
    raise _Unsuitable


_tensors_are_known: bool | None = None  # None until a tensor is seen


def _is_tensor(value: Any) -> bool:
    """True for an exact tensor or parameter of PyTorch, if tensors are laid out as the launcher believes."""
    global _tensors_are_known
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    if _tensors_are_known is None:
        try:
            _tensors_are_known = is_supported_interpreter() and tensor_layout_holds(torch, TENSORS)
        except (AttributeError, RuntimeError, TypeError, ValueError):  # another release of PyTorch
            _tensors_are_known = False
    return _tensors_are_known


def _tensor_kind(tensor: Any) -> tuple[type, int, int]:
    fields = tensor_fields(tensor, TENSORS)
    return (type(tensor), fields["elements"], fields["kind"])


def _integer_guard(parameter: Parameter, type_: ScalarType, divisible: int) -> dict[str, int]:
    low, high = type_.minimum, type_.maximum
    if type_.is_float or type_ == I1 or high > I64.maximum:
        raise _Unsuitable
    if parameter.type is None and type_ == I64:
        # i64 is for what i32 does not hold: one of two ranges, of which the upper one is used.
        low = I32.maximum + 1
    refuses_one = parameter.type is None and not parameter.do_not_specialize
    return {"kind": INTEGER, "low": low, "high": high, "divisible": divisible, "size": int(refuses_one)}


class Chain:
    """The callables of one kernel: its tables, newest first, then the launch in Python.

    Args:
        start: what is called as long as there is no table; it looks here for one that was made since.
        python: the launch in Python.
    """

    def __init__(self, start: Callable[..., Any], python: Callable[..., Any]) -> None:
        self._python = python
        self._tables: list[LaunchTable] = []
        self._seen: set[tuple[object, ...]] = set()
        self.first: Callable[..., Any] = start

    @property
    def is_warm(self) -> bool:
        """True if there is a table."""
        return bool(self._tables)

    def add(self, version: object, launch: WarmLaunch) -> None:
        """Put a table for this launch in front, unless one was made before or it cannot have one."""
        key = (id(version), launch.form)
        if key in self._seen or len(self._seen) >= 4 * MAXIMUM_TABLES:
            return
        with _lock:
            self._seen.add(key)
            self._add(launch)

    def _add(self, launch: WarmLaunch) -> None:
        launcher = _shared_launcher()
        bind = launcher.bind
        if bind is None:
            return
        try:
            table = LaunchTable(launch)
        except _Unsuitable:
            return
        self._tables = [table, *self._tables[: MAXIMUM_TABLES - 1]]
        callable_ = self._python
        for each in reversed(self._tables):
            callable_ = bind((callable_, each.address, each, launcher))  # what is called keeps its code
        self.first = callable_

    def renew_after_fork(self) -> None:
        for table in self._tables:
            table.renew_scratch()

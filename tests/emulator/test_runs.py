"""How often regions run and where lanes are: what the planners of devices know of a launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.abi import SLOT_BYTES
from blocklang.compiler import CountedKernel, compile_counted
from blocklang.emulation.addresses import Addresses, Form
from blocklang.emulation.estimate import CLASSES, program_classes
from blocklang.emulation.planning import Facts, Planner, Runs
from blocklang.ir.core import Kernel, Value
from blocklang.jit import Launch
from blocklang.jit.recording import replace_launches
from blocklang.jit.specialisation import slots_of
from blocklang.ops.control import For, If, While
from blocklang.ops.memory import Load, Store
from blocklang.runtime.launch import LoadedKernel
from blocklang.target import find_device

TRN2 = find_device("trn2")


def counted(start: Callable[[], object]) -> tuple[CountedKernel, np.ndarray[Any, Any]]:
    """A launch, counted: the kernel, and its rows of counters."""
    found: list[tuple[CountedKernel, np.ndarray[Any, Any]]] = []

    def run(launch: Launch) -> None:
        kernel = compile_counted(launch.compiled.source, TRN2)
        rows = np.zeros((math.prod(launch.grid), kernel.counts.counters), np.int64)
        given = launch.slots[: kernel.abi.argument_bytes - SLOT_BYTES]
        slots = given + slots_of([rows.ctypes.data])
        LoadedKernel(kernel.abi, kernel.object_code).launch(slots, launch.grid, threads=2)
        found.append((kernel, rows))

    with replace_launches(run):
        start()
    return found[0]


def planner_of(kernel: CountedKernel, row: Any, **arguments: int) -> Planner:
    addresses = Addresses(kernel.block, arguments, (1, 1, 1))
    return Planner(kernel.block, TRN2, Facts(kernel.block), addresses, Runs.of(kernel.counts, row))


def trips(planner: Planner, cls: type) -> list[float]:
    """The rounds of every loop, or the shares of every branch, in the order of the program."""
    return [
        planner.trips[op, n]
        for op in planner.kernel.walk()
        if isinstance(op, cls)
        for n in range(len(op.regions))
    ]


@bl.jit
def nest(out: Any, n: Any, B: tl.constexpr) -> None:
    pid = tl.program_id(0)
    acc = tl.zeros((B,), tl.float32)
    for i in range(pid, n):
        for _j in range(0, i, 2):
            acc += 1.0
        if i % 3 == 0:
            acc += 2.0
    tl.store(out + pid * B + tl.arange(0, B), acc)


def test_each_program_counts_its_own_rounds() -> None:
    out = np.zeros(4 * 16, np.float32)
    kernel, rows = counted(lambda: nest[(4,)](out, 9, B=16))
    for pid in range(4):
        planner = planner_of(kernel, rows[pid])
        outer = range(pid, 9)
        inner = [len(range(0, i, 2)) for i in outer]
        assert trips(planner, For) == pytest.approx([len(outer), sum(inner) / len(outer)])
        assert trips(planner, If)[0] == pytest.approx(sum(i % 3 == 0 for i in outer) / len(outer))


@bl.jit
def until(out: Any, x: Any) -> None:
    pid = tl.program_id(0)
    n = tl.load(x + pid)
    steps = 0
    while n != 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out + pid, steps)


def test_loops_that_depend_on_memory() -> None:
    x = np.array([1, 6, 7, 27], np.int32)
    out = np.zeros(4, np.int32)
    kernel, rows = counted(lambda: until[(4,)](out, x))
    assert out.tolist() == [0, 8, 16, 111]
    assert [trips(planner_of(kernel, row), While)[1] for row in rows] == out.tolist()


@bl.jit
def unrolled(out: Any, n: Any, B: tl.constexpr) -> None:
    for k in tl.static_range(3):
        acc = tl.zeros((B,), tl.float32)
        for _i in range(n):
            acc += 1.0
        tl.store(out + k * B + tl.arange(0, B), acc)


def test_loops_of_one_line_share_what_was_counted() -> None:
    kernel, rows = counted(lambda: unrolled[(1,)](np.zeros(48, np.float32), 5, B=16))
    assert trips(planner_of(kernel, rows[0]), For) == [5, 5, 5]


@bl.jit
def masked(out: Any, x: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_lanes_that_move() -> None:
    x = np.zeros(64, np.float32)
    kernel, rows = counted(lambda: masked[(4,)](x.copy(), x, 37, B=16))
    for row, live in zip(rows, (16, 16, 5, 0), strict=True):
        planner = planner_of(kernel, row)
        accesses = [op for op in kernel.block.walk() if isinstance(op, (Load, Store))]
        assert [planner.live_share(op) for op in accesses] == [live / 16] * 2
        assert [planner.access_bytes(op) for op in accesses] == [live * 4] * 2


def test_two_axes_of_the_grid() -> None:
    """Rows are in the order of the grid, axis 0 fastest."""

    out = np.zeros(6 * 8, np.float32)
    kernel, rows = counted(lambda: two_axes[(3, 2)](out, B=8))
    rounds = [trips(planner_of(kernel, row), For)[0] for row in rows]
    assert rounds == [x + 10 * y for y in range(2) for x in range(3)]


@bl.jit
def two_axes(out: Any, B: tl.constexpr) -> None:
    x, y = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((B,), tl.float32)
    for _ in range(x + 10 * y):
        acc += 1.0
    tl.store(out + (y * 3 + x) * B + tl.arange(0, B), acc)


# ---- addresses ----


@bl.jit
def tile(out: Any, x: Any, stride: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    pid = tl.program_id(0)
    rows = pid * M + tl.arange(0, M)
    cols = tl.arange(0, N)
    straight = x + rows[:, None] * stride + cols[None, :]
    across = out + cols[:, None] * stride + rows[None, :]
    tl.store(across, tl.trans(tl.load(straight)))


def pointers(kernel: Kernel) -> list[Value]:
    return [op.pointer for op in kernel.walk() if isinstance(op, (Load, Store))]


def test_strides_and_bases_of_a_launch() -> None:
    x = np.zeros((64, 64), np.float32)
    kernel, _ = counted(lambda: tile[(4,)](x.copy(), x, 64, M=16, N=32))
    found = Addresses(kernel.block, {"stride": 64}, (4, 1, 1))
    load, store = pointers(kernel.block)
    assert found.of(load).strides == (256, 4)
    assert found.of(store).strides == (256, 4)
    assert found.of(load).base.tolist() == [p * 16 * 64 * 4 for p in range(4)]
    assert found.of(store).base.tolist() == [p * 16 * 4 for p in range(4)]
    assert [found.run_bytes(p) for p in (load, store)] == [32 * 4, 16 * 4]
    assert [found.origin(p) for p in (load, store)] == ["x", "out"]


def test_rows_that_touch_are_one_run() -> None:
    x = np.zeros((64, 32), np.float32)
    kernel, _ = counted(lambda: tile[(1,)](np.zeros((64, 64), np.float32), x, 32, M=16, N=32))
    found = Addresses(kernel.block, {"stride": 32}, (1, 1, 1))
    assert found.run_bytes(pointers(kernel.block)[0]) == 16 * 32 * 4


@bl.jit
def gathered(out: Any, x: Any, index: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


def test_a_gather_has_no_strides() -> None:
    x = np.zeros(16, np.float32)
    kernel, _ = counted(lambda: gathered[(1,)](x.copy(), x, np.arange(16, dtype=np.int32), B=16))
    found = Addresses(kernel.block, {}, (1, 1, 1))
    form = found.of(pointers(kernel.block)[1])
    assert form == Form(None, (None,))
    assert found.run_bytes(pointers(kernel.block)[1]) == 4


# ---- classes of programs ----


def test_equal_rows_are_one_class() -> None:
    rows = np.array([[1, 2], [3, 4], [1, 2], [1, 2]])
    assert program_classes(rows) == [([1, 2], 3), ([3, 4], 1)]
    assert program_classes(np.zeros((5, 0), np.int64)) == [((), 5)]


def test_many_different_programs_are_grouped() -> None:
    rows = np.arange(1000)[:, None] * np.array([1, 3])
    found = program_classes(rows)
    assert len(found) == CLASSES
    assert sum(count for _, count in found) == 1000
    total = sum(np.array(row) * count for row, count in found)
    np.testing.assert_allclose(total, rows.sum(axis=0))

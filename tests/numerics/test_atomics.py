"""Atomics, fences, locks: in both modes, with one and several threads, over types and ragged extents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import atomic_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, interpreted, launch_both
from tests.numerics.values import NUMPY_DTYPES, random_numbers

FLOATS = ("fp16", "bf16", "fp32", "fp64")
WIDE = ("int32", "uint32", "int64", "uint64")
THREADS = pytest.mark.parametrize("threads", [0, 1, 2, 5])  # 0: interpreted


def finite(name: str, n: int) -> Array:
    rng = np.random.default_rng(n)
    if name in FLOATS:
        return (rng.standard_normal(n) * 10).astype(np.float32).astype(NUMPY_DTYPES[name])
    return random_numbers(name, (n,))


def places(n: int, count: int) -> Array:
    return np.random.default_rng(n + 1).integers(0, count, n).astype(np.int32)


def changed(kind: str, a: Any, b: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        if kind == "add" and dtype.itemsize == 2:
            return np.float32(np.float32(a) + np.float32(b)).astype(dtype)
        functions: dict[str, Any] = {
            "add": np.add,
            "max": np.maximum,
            "min": np.minimum,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
            "xchg": lambda x, y: y,
        }
        return functions[kind](a, b)


def one_by_one(kind: str, memory: Array, where: Array, values: Array, live: Array) -> Array:
    old = np.zeros(len(values), memory.dtype)
    for lane in np.flatnonzero(live):
        old[lane] = memory[where[lane]]
        memory[where[lane]] = changed(kind, memory[where[lane]], values[lane], memory.dtype)
    return old


KINDS = [
    *((kind, name) for kind in ("add", "max", "min", "and", "or", "xor", "xchg") for name in WIDE),
    *(("add", name) for name in FLOATS),
    *((kind, name) for kind in ("max", "min", "xchg") for name in ("fp32", "fp64")),
]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_every_lane_takes_effect(kind: str, name: str) -> None:
    for n, block, count in ((1, 1, 1), (17, 33, 3), (100, 64, 100), (257, 300, 5)):
        values, where, start = finite(name, n), places(n, count), finite(name, count + n)[n:]
        contents, old = launch_both(
            kernels.rmw,
            -(-n // block),
            np.zeros(1, np.int8),
            values,
            where,
            Out((count,), name, start),
            Out((n,), name),
            n,
            KIND=kind,
            BLOCK=block,
        )
        right = start.copy()
        wanted = one_by_one(kind, right, where, values, np.arange(n) % 5 != 3)
        assert_same_bits(contents, right, f"{kind} of {name}, n = {n}")
        assert_same_bits(old, wanted, f"old of {kind} of {name}, n = {n}")


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_extrema_of_zeros_and_infinities(kind: str, name: str) -> None:
    special = np.array([-np.inf, -1.5, -0.0, 0.0, 1.5, np.inf], NUMPY_DTYPES[name])
    a, b = (x.reshape(-1) for x in np.meshgrid(special, special))
    n = len(a)
    (contents, _) = launch_both(
        kernels.rmw,
        1,
        np.zeros(1, np.int8),
        b,
        np.arange(n, dtype=np.int32),
        Out((n,), name, a),
        Out((n,), name),
        n,
        KIND=kind,
        BLOCK=n,
    )
    rank = np.arange(6)
    i, j = (x.reshape(-1) for x in np.meshgrid(rank, rank))
    chosen = special[np.maximum(i, j) if kind == "max" else np.minimum(i, j)]
    live = np.arange(n) % 5 != 3
    assert_same_bits(contents, np.where(live, chosen, a))


@pytest.mark.parametrize("name", ["int16", "uint16", "fp16", "bf16", *WIDE, "fp32", "fp64"])
def test_compare_and_swap(name: str) -> None:
    dtype = NUMPY_DTYPES[name]
    for n, block in ((1, 4), (40, 40), (100, 128)):
        rng = np.random.default_rng(n)
        start, compare, values = (rng.integers(0, 3, k).astype(dtype) for k in (7, n, n))
        start[0] = 1
        where = places(n, 7)
        contents, old = launch_both(
            kernels.swap, 1, compare, values, where, Out((7,), name, start), Out((n,), name), n, BLOCK=block
        )
        right, wanted = start.copy(), np.zeros(n, dtype)
        for lane in range(n):
            wanted[lane] = right[where[lane]]
            if right[where[lane]] == compare[lane]:
                right[where[lane]] = values[lane]
        assert_same_bits(contents, right, f"n = {n}")
        assert_same_bits(old, wanted, f"n = {n}")


@pytest.mark.parametrize("name", ["int32", "int64", "fp32"])
def test_results_that_nobody_reads(name: str) -> None:
    for n, block in ((1, 1), (33, 64), (257, 257)):
        x = np.random.default_rng(n).integers(0, 100, n).astype(NUMPY_DTYPES[name])
        start = np.zeros(8, x.dtype)
        (out,) = launch_both(kernels.unused, 1, x, Out((8,), name, start), n, BLOCK=block)
        assert out.tolist() == [x.sum()] * 5 + [3] * 3


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 33), (17, 2)])
def test_shapes(shape: tuple[int, int]) -> None:
    m, n = shape
    start = np.zeros(m * n, np.int32)
    out, old = launch_both(
        kernels.shapes, 1, Out((m * n,), "int32", start), Out((4, m, n), "int32"), M=m, N=n
    )
    row, column = np.mgrid[:m, :n]
    right = np.zeros((m, n), np.int32)
    right[0, 0] = m * n
    second = np.where(column > 0, right, 0)
    right += np.where(column > 0, row + 1, 0).astype(np.int32)
    third = 3 * right + 3 * column
    assert (out.reshape(m, n) == right + 3 * column).all()
    assert (old[0] == np.arange(m * n).reshape(m, n)).all()
    assert (old[1] == second).all()
    assert (old[2] == third).all()
    assert (old[3] == second.sum(1)[:, None]).all()


def test_what_is_computed_around_an_atomic() -> None:
    for n, block in ((1, 3), (33, 33), (100, 128)):
        x, start = random_numbers("fp32", (n,)), np.arange(n, dtype=np.float32)
        x = np.clip(np.nan_to_num(x), -3, 3)
        out, old = launch_both(
            kernels.computed, 1, x, Out((n,), "fp32", start), Out((3, n), "fp32"), n, BLOCK=block
        )
        assert (old[0] == start).all()
        assert (old[1] == np.roll(start, -1)).all()
        assert (old[2] == out).all()
        np.testing.assert_allclose(out, start + np.roll(np.exp(x), 1), rtol=1e-6)


def test_values_that_are_loaded_where_they_are_added() -> None:
    for n in (1, 8, 33, 100):
        start = np.arange(1, n + 1)
        out, old = launch_both(
            kernels.in_place,
            1,
            Out((n,), "int32", start.astype(np.int32)),
            Out((n,), "int32"),
            n,
            BLOCK=n + 3,
        )
        assert (old == 2 * start).all()
        assert (out == 2 * start + np.roll(2 * start, -1)).all()


@pytest.mark.parametrize("name", ["int32", "uint64", "fp32", "fp64"])
def test_values_are_cast_to_the_element_type(name: str) -> None:
    n = 9
    start = np.zeros(n, NUMPY_DTYPES[name])
    out, old = launch_both(kernels.weak, 1, Out((n,), name, start), Out((4, n), name), BLOCK=n)
    i = np.arange(n)
    assert (old[0] == 0).all()
    assert (old[1] == (i > 0)).all()
    assert (old[2] == np.where(i > 0, 2, 1)).all()
    assert (old[3] == i).all()
    right = np.where(i == 1, 5, i)
    right[1] = np.array(-7).astype(start.dtype) if name != "uint64" else 5
    assert (out == right).all()


def test_fences_keep_accesses_on_their_side() -> None:
    for n in (1, 5, 33, 100):
        start = np.arange(n, dtype=np.int32) * 3
        out, old = launch_both(
            kernels.fences, 1, Out((n,), "int32", start), Out((3, n), "int32"), n, BLOCK=n + 1
        )
        assert not out.any()
        assert (old[0] == start).all()
        assert (old[1] == start + 1).all()
        assert (old[2] == start + 11).all()


def programs_for(threads: int, count: int) -> int:
    """Enough programs for several chunks on each thread; the interpreter has one."""
    return count if threads else 30


def launch_on(threads: int, kernel: Any, grid: int, *arrays: Array, **named: Any) -> None:
    if not threads:
        interpreted(kernel)[grid](*arrays, **named)
        return
    for last in (False, False, True):  # a kernel is spread over threads when it is known how long it takes
        with bl.num_threads(threads):
            kernel[grid](*(arrays if last else [a.copy() for a in arrays]), **named)


@THREADS
def test_a_counter(threads: int) -> None:
    programs = programs_for(threads, 5000)
    out, order = np.zeros(4, np.int32), np.zeros(programs, np.int32)
    launch_on(threads, kernels.counter, programs, out, order, BLOCK=33)
    assert out.tolist() == [programs, *[programs * 11] * 3]
    assert (order == 1).all()


@THREADS
def test_a_lock(threads: int) -> None:
    programs, n = programs_for(threads, 3000), 37
    lock, total = np.zeros(1, np.int32), np.zeros(n, np.int64)
    launch_on(threads, kernels.locked, programs, lock, total, n=n, BLOCK=64)
    assert lock[0] == 0
    assert (total == programs * (programs - 1) // 2 + np.arange(n) * programs).all()


@THREADS
def test_locks_of_groups(threads: int) -> None:
    programs, groups, n = programs_for(threads, 2001), 3, 40
    partial = np.zeros((groups, n), np.float32)
    locks, counts = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
    launch_on(threads, kernels.grouped, programs, partial, locks, counts, GROUPS=groups, BLOCK=n)
    for group in range(groups):
        members = np.arange(group, programs, groups)
        right = members.sum() + np.arange(n) * 0.5 * len(members)
        assert (partial[group] == right).all()
    assert not locks.any()


@THREADS
def test_a_chain(threads: int) -> None:
    """Every program waits for the one before it, across all chunks of ids."""
    programs, n = programs_for(threads, 2000), 19
    flags, data = np.zeros(programs + 1, np.int32), np.zeros((programs + 1, n), np.int32)
    flags[0] = 1
    launch_on(threads, kernels.chain, programs, flags, data, n=n, BLOCK=32)
    assert flags.all()
    assert (data == np.arange(programs + 1)[:, None] * np.arange(n)).all()


def test_deterministic_launches_add_floats_in_order_of_the_programs() -> None:
    programs, block = 400, 64
    x = np.random.default_rng(0).standard_normal(programs * block).astype(np.float32)
    right = np.zeros(3, np.float32)
    for program in range(programs):
        for lane, value in enumerate(x[program * block : (program + 1) * block]):
            right[(program * block + lane) % 3] += value
    with bl.num_threads(4):
        for _ in range(20):
            out = np.zeros(3, np.float32)
            kernels.many_sums[programs,](x, out, BLOCK=block, deterministic=True)
            assert_same_bits(out, right)
    out = np.zeros(3, np.float32)
    interpreted(kernels.many_sums)[programs,](x, out, BLOCK=block, deterministic=True)
    assert_same_bits(out, right)

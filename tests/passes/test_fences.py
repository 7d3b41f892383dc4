"""Fences: what is loaded before one is kept there, and nothing moves across it."""

from __future__ import annotations

import pytest

from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ops.atomics import Atomic, Fence
from blocklang.ops.memory import Load, Store
from blocklang.passes.lower_to_tile import lower_to_tile
from blocklang.passes.pipeline import run_pipeline
from blocklang.passes.schedule import choose_schedule
from blocklang.target import target_for

TARGET = target_for("x86-64-v3")


def kernel(between: str, stored: str = "%y") -> Kernel:
    """Loads a block, does something, stores the block to another array or to the same one."""
    return parse_kernel(f"""
kernel @k(%x: ptr<f32>, %y: ptr<f32>, %p: ptr<i32>, %n: i32) alias="disjoint" {{
  %i = arange start=0, end=64 : block<64xi32>
  %q = offset %x, %i : block<64xptr<f32>>
  %v = load %q : block<64xf32>
  {between}
  %r = offset {stored}, %i : block<64xptr<f32>>
  store %r, %v
  return
}}
""")


def kept(kernel: Kernel) -> dict[str, str]:
    lower_to_tile(kernel)
    return choose_schedule(kernel, TARGET).kept


FENCES = {
    "barrier": "fence",
    "atomic": '%one = constant value=1 : i32\n  %old = atomic_rmw %p, %one, kind="add" : i32',
    "swap": "%one = constant value=1 : i32\n  %old = atomic_cas %p, %n, %one : i32",
    "volatile load": "%flag = load %p, volatile=true : i32",
    "in a branch": "%z = constant value=0 : i32\n"
    '  %c = cmp %n, %z, predicate="lt" : i1\n  if %c {\n fence\n yield\n }',
}


@pytest.mark.parametrize("name", FENCES)
def test_a_load_of_a_written_array_stays_before_a_fence(name: str) -> None:
    assert kept(kernel(FENCES[name], stored="%x")) == {"%v": "loaded before a fence"}


@pytest.mark.parametrize("name", FENCES)
def test_a_load_of_an_array_that_nobody_writes_may_move(name: str) -> None:
    assert kept(kernel(FENCES[name], stored="%y")) == {}


def test_without_a_fence_it_is_loaded_where_it_is_stored() -> None:
    assert kept(kernel("", stored="%x")) == {}


@pytest.mark.parametrize("name", FENCES)
def test_the_order_of_effects_survives_all_passes(name: str) -> None:
    source = kernel(FENCES[name], stored="%x")
    placed = run_pipeline(source, TARGET, verify_each=True).kernel
    watched = (Load, Store, Atomic, Fence)
    order = [op.name for op in placed.walk() if isinstance(op, watched)]
    assert order[0] == "load"
    assert order[-1] == "store"
    assert len(order) == 3


def test_lanes_of_an_atomic_are_walked_in_row_major_order() -> None:
    source = parse_kernel("""
kernel @k(%p: ptr<i32>, %one: i32) alias="disjoint" {
  %i = arange start=0, end=8 : block<8xi32>
  %c = expand_dims %i, axis=1 : block<8x1xi32>
  %b = broadcast %c, shape=[8, 4] : block<8x4xi32>
  %q = offset %p, %b : block<8x4xptr<i32>>
  %old = atomic_rmw %q, %one, kind="add" : block<8x4xi32>
  return
}
""")
    lower_to_tile(source)
    (loop,) = choose_schedule(source, TARGET).loops.values()
    assert loop.order == (0, 1)
    assert loop.width <= 8


def test_an_atomic_is_never_dead_and_never_merged() -> None:
    source = parse_kernel("""
kernel @k(%p: ptr<i32>, %n: i32) alias="disjoint" {
  %zero = constant value=0 : i32
  %one = constant value=1 : i32
  %a = atomic_rmw %p, %one, kind="add" : i32
  %b = atomic_rmw %p, %one, kind="add" : i32
  for %zero, %n, %one {
    (%i: i32):
    %c = atomic_rmw %p, %one, kind="add" : i32
    fence
    yield
  }
  return
}
""")
    placed = run_pipeline(source, TARGET, verify_each=True).kernel
    names = [op.name for op in placed.walk()]
    assert names.count("atomic_rmw") == 3
    inside = [op.parent_op.name for op in placed.walk() if op.name == "fence" and op.parent_op is not None]
    assert inside == ["for"]

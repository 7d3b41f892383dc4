"""Ask before a loop over lanes what a mask asks in every lane alike.

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %row: i64, %rows: i64) {
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %m = cmp %row, %rows, predicate="lt" : i1
      lanes %c0, %c64, width=64 {
        (%i: i64):
        %a = offset %p, %i : ptr<f32>
        %w = load %a, mask=%m : f32
        %b = offset %q, %i : ptr<f32>
        store %b, %w
        yield
      }
      return
    }

becomes

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %row: i64, %rows: i64) {
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %m = cmp %row, %rows, predicate="lt" : i1
      if %m {
        %v0 = constant value=true : i1
        lanes %c0, %c64, width=64 {
          (%i: i64):
          %a = offset %p, %i : ptr<f32>
          %w = load %a, mask=%v0 : f32
          %b = offset %q, %i : ptr<f32>
          store %b, %w
          yield
        }
        yield
      } {
        %v1 = constant value=false : i1
        lanes %c0, %c64, width=64 {
          (%i_0: i64):
          %a_0 = offset %p, %i_0 : ptr<f32>
          %w_0 = load %a_0, mask=%v1 : f32
          %b_0 = offset %q, %i_0 : ptr<f32>
          store %b_0, %w_0
          yield
        }
        yield
      }
      return
    }

`(row < rows) & (col < cols)` is such a mask: along the row its first half is one number. The main loop then
has no mask at all, and the other one little to compute: where the mask is false, what is loaded is known.
Loops that do nothing without the mask have no second version. Loops whose lanes lie apart in a buffer stay as
they are: several rows are turned at once there, each with its own mask.

Requires: level placed; ranges of the loop's own index have become its bounds (`narrow_loops`).
Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.analysis.index_steps import crosses_rows
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I1
from blocklang.ops.atomics import AtomicRmw
from blocklang.ops.control import If, Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import And
from blocklang.ops.memory import Load, Store
from blocklang.ops.tile import Lanes


def unswitch_masks(kernel: Kernel) -> None:
    """Give every loop over lanes of a placed kernel a version without the masks that its lanes share."""
    assert kernel.level == "placed"
    for loop in [op for op in kernel.walk() if isinstance(op, Lanes) and not op.general]:
        shared = [] if crosses_rows(loop) else _shared_masks(loop)
        if shared:
            _unswitch(loop, shared)


def _shared_masks(loop: Lanes) -> list[Value]:
    """The parts of the masks of accesses that are the same in all lanes, and not known."""
    found: dict[Value, None] = {}
    for op in loop.body.ops:
        if isinstance(op, (Load, Store, AtomicRmw)) and op.mask is not None:
            found |= dict.fromkeys(_outer_parts(op.mask, loop))
    return list(found)


def _outer_parts(mask: Value, loop: Lanes) -> list[Value]:
    op = mask.defining_op
    if op is None or not loop.body.encloses(op):
        return [] if isinstance(op, Constant) else [mask]
    return [part for side in op.operands for part in _outer_parts(side, loop)] if isinstance(op, And) else []


def _unswitch(loop: Lanes, shared: list[Value]) -> None:
    builder = Builder.before_op(loop)
    condition = shared[0]
    for mask in shared[1:]:
        condition = builder.value(And, condition, mask)
    then, otherwise = Region(), Region()
    branch = builder.create(
        If, condition, result_types=[r.type for r in loop.results], regions=[then, otherwise]
    )
    for old, new in zip(loop.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    _fill(then, loop, shared, holds=True)
    if _is_idle_without(loop, shared):
        Builder(otherwise).create(Yield)
    else:
        # Of several masks it is not known which one is false.
        _fill(otherwise, loop, shared if len(shared) == 1 else [], holds=False)
    loop.erase()


def _fill(region: Region, loop: Lanes, masks: list[Value], *, holds: bool) -> None:
    """Put a version of the loop into a region, with the masks replaced by what they are there."""
    builder = Builder(region)
    known = {mask: builder.value(Constant, value=holds, result_types=[I1]) for mask in masks}
    builder.create(Yield, *builder.insert(clone_operation(loop, known)).results)


def _is_idle_without(loop: Lanes, shared: list[Value]) -> bool:
    """True if the loop has no effect where one of the masks is false."""
    effects = [op for op in loop.body.walk() if op.effects and not isinstance(op, Load)]
    return (
        not loop.results
        and all(
            isinstance(op, Store)
            and op.parent is loop.body
            and op.mask is not None
            and set(shared) <= set(_outer_parts(op.mask, loop))
            for op in effects
        )
        and not any(isinstance(op, Load) and op.volatile for op in loop.body.walk())
    )

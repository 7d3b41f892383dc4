"""Give loops over lanes whose addresses grow by strides of the launch a version for strides of 1.

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %stride: i64) {
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=64 {
        (%i: i64):
        %a = mul %i, %stride : i64
        %b = offset %p, %a : ptr<f32>
        %w = load %b : f32
        %c = offset %q, %i : ptr<f32>
        store %c, %w
        yield
      }
      return
    }

becomes

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %stride: i64) {
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %v0 = constant value=1 : i64
      %unit = cmp %stride, %v0, predicate="eq" : i1
      if %unit {
        lanes %c0, %c64, width=64 {
          (%i: i64):
          %a = mul %i, %v0 : i64
          %b = offset %p, %a : ptr<f32>
          %w = load %b : f32
          %c = offset %q, %i : ptr<f32>
          store %c, %w
          yield
        }
        yield
      } {
        lanes %c0, %c64, width=64 {
          (%i_0: i64):
          %a_0 = mul %i_0, %stride : i64
          %b_0 = offset %p, %a_0 : ptr<f32>
          %w_0 = load %b_0 : f32
          %c_0 = offset %q, %i_0 : ptr<f32>
          store %c_0, %w_0
          yield
        }
        yield
      }
      return
    }

A stride of 1 that a launch passes as a plain number is a constant already. What comes here was kept from that
(`do_not_specialize`), was computed, or was loaded; it is 1 all the same, most of the time. With it, an access
is one vector of consecutive elements.

Requires: level placed; offsets are 64-bit affine forms (`guard_accesses`).
Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.analysis.index_steps import IndexSteps, crosses_rows
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I64
from blocklang.ops.control import If, Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Compare, Mul, Sub
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.tile import Lanes


def version_strides(kernel: Kernel) -> None:
    """Version the loops over lanes of a placed kernel."""
    assert kernel.level == "placed"
    for loop in [op for op in kernel.walk() if isinstance(op, Lanes) and not op.general]:
        strides = _run_time_strides(loop)
        if strides and not crosses_rows(loop):
            _version(loop, strides)


def _run_time_strides(loop: Lanes) -> list[Value]:
    """The i64 values from before the loop by which addresses of accesses grow from lane to lane."""
    steps = IndexSteps()
    found: dict[Value, None] = {}
    for op in loop.body.walk():
        if isinstance(op, (Load, Store)):
            found |= dict.fromkeys(_strides_of(op.pointer, loop, steps))
    return list(found)


def _strides_of(value: Value, loop: Lanes, steps: IndexSteps) -> list[Value]:
    op = value.defining_op
    if op is None or not loop.body.encloses(op):
        return []
    if isinstance(op, (Offset, Add, Sub)):
        return [stride for part in op.operands for stride in _strides_of(part, loop, steps)]
    if isinstance(op, Mul) and op.result.type == I64:
        index = loop.body.args[0]
        for factor, stride in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if (
                steps.of(factor, index) == 1
                and steps.of(stride, index) == 0
                and not isinstance(stride.defining_op, Constant)
                and _stands_before(stride, loop)
            ):
                return [stride]
    return []


def _stands_before(value: Value, loop: Lanes) -> bool:
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent
    return owner is not loop and not (isinstance(owner, Operation) and loop.body.encloses(owner))


def _version(loop: Lanes, strides: list[Value]) -> None:
    builder = Builder.before_op(loop)
    one = builder.value(Constant, value=1, result_types=[I64])
    tests = [builder.value(Compare, stride, one, predicate="eq", name="unit") for stride in strides]
    condition = tests[0]
    for test in tests[1:]:
        condition = builder.value(And, condition, test)
    regions = [Region(), Region()]
    branch = builder.create(If, condition, result_types=[r.type for r in loop.results], regions=regions)
    for old, new in zip(loop.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    versions: list[Operation] = [
        clone_operation(loop, dict.fromkeys(strides, one)),
        clone_operation(loop, {}),
    ]
    for region, version in zip(regions, versions, strict=True):
        inner = Builder(region)
        inner.create(Yield, *inner.insert(version).results)
    loop.erase()

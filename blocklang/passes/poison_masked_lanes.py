"""Fill the masked lanes of loads that name no `other` with a value that cannot be overlooked.

    kernel @k(%p: ptr<f32>, %m: i1) {
      %v = load %p, mask=%m : f32
      store %p, %v
      return
    }

becomes

    kernel @k(%p: ptr<f32>, %m: i1) {
      %v0 = constant value=nan : f32
      %v = load %p, mask=%m, other=%v0 : f32
      store %p, %v
      return
    }

Such lanes read 0, and elsewhere anything: a kernel that relies on them is not portable. This shows where one
does; it changes results, so it runs only if a launch asks for it. `blocklang.ops.faults.poison` is the value.

Requires: level block. Keeps: every load with an `other` or without a mask; every effect.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel
from blocklang.ir.types import ScalarType, element_type
from blocklang.ops.creation import Constant
from blocklang.ops.faults import poison
from blocklang.ops.memory import Load


def poison_masked_lanes(kernel: Kernel) -> None:
    """Give every masked load an `other`."""
    assert kernel.level == "block"
    for op in list(kernel.walk()):
        if isinstance(op, Load) and op.mask is not None and op.other is None:
            element = element_type(op.result.type)
            assert isinstance(element, ScalarType)
            value = poison(element)
            other = Builder.before_op(op).value(Constant, value=value, result_types=[element])
            op.set_segment("other", [other])

"""How much arithmetic a launch does: the numerator of a roofline.

Operations are those of the kernel as it is written, on whole blocks: lanes behind a mask count, too, and how
the device computes them does not matter. A multiply-add is two.

Not here: the bytes (they are counted while the kernel runs) and the roofs (`roofline`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.abi import AccessCounts
from blocklang.emulation.addresses import Addresses
from blocklang.emulation.planning import Facts, Planner, Runs, is_block
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import element_type, shape_of
from blocklang.ops import elementwise as e
from blocklang.ops.control import For, If, While
from blocklang.ops.reduction import Dot, Reduce, ReduceWith
from blocklang.ops.scan import MapElementwise, Scan
from blocklang.target import Device

_ARITHMETIC = (e.Binary, e.Div, e.Fma, e.Scale, e.Abs, e.Neg, e.FloatUnary, e.FloatFunction)


@dataclass(frozen=True)
class Work:
    """Floating-point operations of one launch, all programs together.

    Attributes:
        products: of matrix products, by the element type of their operands.
        lanes: of everything else: one for each lane of a sum, a product, a function, a fold.
    """

    products: Mapping[str, float]
    lanes: float

    @property
    def flops(self) -> float:
        """All of them."""
        return sum(self.products.values()) + self.lanes

    def to_dict(self) -> dict[str, Any]:
        """Part of the JSON report."""
        return {"products": dict(self.products), "lanes": self.lanes}


def work_of(
    kernel: Kernel,
    device: Device,
    counts: AccessCounts,
    counters: Sequence[int],
    grid: tuple[int, int, int],
) -> Work:
    """The arithmetic of a launch.

    Args:
        kernel: of level block, after the passes for whole blocks.
        counters: the sums over all programs.
    """
    programs = math.prod(grid)
    if not programs:
        return Work({}, 0.0)
    runs = Runs.of(counts, [counter / programs for counter in counters])
    planner = Planner(kernel, device, Facts(kernel), Addresses(kernel, {}, grid), runs)
    products: dict[str, float] = defaultdict(float)
    lanes = 0.0
    for op, times in _executions(planner, kernel.body, float(programs)):
        if isinstance(op, Dot):
            products[str(element_type(op.a.type))] += times * _product(op)
        else:
            lanes += times * _lane_operations(op)
    return Work(dict(products), lanes)


def _executions(planner: Planner, region: Region, times: float) -> Iterator[tuple[Operation, float]]:
    """Every operation outside functions of folds, and how often it runs."""
    for op in region.ops:
        yield op, times
        if isinstance(op, (For, While, If)):
            for number, inner in enumerate(op.regions):
                yield from _executions(planner, inner, times * planner.trips[op, number])


def _product(op: Dot) -> int:
    """2 M N K, as often as there are matrices."""
    return 2 * math.prod(shape_of(op.a.type)) * shape_of(op.b.type)[-1]


def _lane_operations(op: Operation) -> int:
    if isinstance(op, (Reduce, ReduceWith, Scan)):
        source = next(v for v in op.operands if is_block(v))
        return math.prod(shape_of(source.type)) if _is_float(source) else 0
    if isinstance(op, MapElementwise):
        inside = sum(_lane_operations(inner) for inner in op.regions[0].ops)
        return inside * math.prod(shape_of(op.results[0].type))
    if not isinstance(op, _ARITHMETIC):
        return 0
    result = op.results[0]
    factor = 2 if isinstance(op, e.Fma) else 1
    return factor * math.prod(shape_of(result.type)) if _is_float(result) else 0


def _is_float(value: Value) -> bool:
    return bool(getattr(element_type(value.type), "is_float", False))

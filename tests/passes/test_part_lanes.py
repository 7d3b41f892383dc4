"""Which loops over blocks become loops of lanes; `tests/numerics/test_alive.py` has what they compute."""

from __future__ import annotations

import pytest

from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.types import F32, I32, BlockType, PointerType
from blocklang.ir.verifier import verify
from blocklang.jit import JITFunction
from blocklang.ops.control import While
from blocklang.passes.canonicalise import canonicalise
from blocklang.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from blocklang.passes.hoist_loop_invariants import hoist_loop_invariants
from blocklang.passes.part_lanes import part_lanes
from tests.numerics import alive_kernels as kernels


def parted(kernel: JITFunction, **constants: int) -> Kernel:
    def argument(name: str) -> Argument:
        if name in constants:
            return Argument(name, constexpr=constants[name])
        element = F32 if name in ("last", "x") and kernel is kernels.escape else I32
        return Argument(name, type=I32 if name in ("steps", "n") else PointerType(element))

    source = kernel.source
    assert isinstance(source, KernelSource)
    ir = build_kernel(source, [argument(p.name) for p in kernel.params])
    for run in (canonicalise, eliminate_common_subexpressions, hoist_loop_invariants, part_lanes):
        run(ir)
        verify(ir)
    return ir


def carries_blocks(kernel: Kernel) -> bool:
    loops = [op for op in kernel.walk() if isinstance(op, While)]
    assert len(loops) == 1
    return any(isinstance(v.type, BlockType) for v in loops[0].operands)


@pytest.mark.parametrize(
    ("kernel", "constants"),
    [
        (kernels.escape, {"LIMIT": 9, "BLOCK": 64}),
        (kernels.collatz, {"BLOCK": 64}),
        (kernels.collatz_rows, {"TALL": 4, "WIDE": 16}),
        (kernels.in_a_loop, {"BLOCK": 64}),
    ],
)
def test_lanes_that_stay_when_they_are_done(kernel: JITFunction, constants: dict[str, int]) -> None:
    assert not carries_blocks(parted(kernel, **constants))


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.how_many_rounds,
        kernels.dead_lanes_move,
        kernels.revived,
        kernels.under_another_mask,
        kernels.number_of_rounds,
        kernels.until_many_are_done,
    ],
)
def test_lanes_that_the_others_are_not_done_with(kernel: JITFunction) -> None:
    assert carries_blocks(parted(kernel, BLOCK=64))

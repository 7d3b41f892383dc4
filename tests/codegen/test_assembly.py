"""What the machine code of the examples looks like, at several CPU levels.

Levels that the host lacks are compiled all the same, and read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import blocklang.language as tl
from blocklang.compiler import CompiledKernel, CompileOptions, compile_kernel
from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.types import F32, I32, PointerType
from blocklang.jit import JITFunction, jit
from blocklang.target import target_for
from examples.matmul import matmul
from examples.softmax import softmax
from examples.vector_add import add

LEVELS = ("x86-64-v3", "x86-64-v4")


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its label and instructions."""

    label: str
    lines: tuple[str, ...]

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, line)) for line in self.lines)


def innermost_loops(assembly: str) -> list[Loop]:
    """The runs of lines from a label to a jump back to it that hold no other jump."""
    lines = assembly.splitlines()
    labels = {line.rstrip(":"): i for i, line in enumerate(lines) if re.fullmatch(r"\.L\w+:", line)}
    loops = []
    for end, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], end) < end:
            body = lines[labels[jump[1]] : end + 1]
            if sum(bool(re.match(r"\s+j", one)) for one in body) == 1:
                loops.append(Loop(jump[1], tuple(body)))
    return loops


def compile_at(kernel: JITFunction, level: str, **constants: object) -> CompiledKernel:
    """Compile for a CPU level: pointers to f32 for `*_ptr`, i32 for the rest, and the given constants."""

    def argument(name: str) -> Argument:
        if name in constants:
            return Argument(name, constexpr=constants[name])
        return Argument(name, type=PointerType(F32) if name.endswith("_ptr") else I32)

    source = kernel.source
    assert isinstance(source, KernelSource)
    ir = build_kernel(source, [argument(p.name) for p in kernel.params])
    ir.attributes["alias"] = "disjoint"
    return compile_kernel(ir, options=CompileOptions(target=target_for(level)))


@pytest.mark.parametrize("level", LEVELS)
def test_matmul_multiplies_in_registers(level: str) -> None:
    """The loop over k is vector FMAs on registers: nothing on the stack, no call; and nowhere is a gather."""
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    contiguous = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    assembly = compile_at(matmul, level, **blocks, **contiguous).assembly
    assert "gather" not in assembly
    products = [loop for loop in innermost_loops(assembly) if loop.count(r"vfmadd\d+ps")]
    assert products
    for loop in products:
        assert loop.count(r"vfmadd\d+ps") >= 8
        assert not loop.count(r"vfmadd\d+ss"), "scalar arithmetic"
        assert not loop.count(r"\(%rsp"), "a spill"
        assert not loop.count(r"\bcall")


@pytest.mark.parametrize("level", LEVELS)
def test_vector_add_runs_on_full_vectors(level: str) -> None:
    """The main loop has unmasked vector loads and stores, and nothing but addition."""
    loops = innermost_loops(compile_at(add, level, BLOCK=1024).assembly)
    full = [loop for loop in loops if loop.count(r"vaddps") and not loop.count(r"\{%k|vmaskmov")]
    assert len(full) == 1
    (main,) = full
    moved = main.count(r"vmovups\s+%[yz]mm\d+, \S*\(")
    assert moved == main.count("vaddps") > 0
    assert not main.count(r"gather|scatter|\bcall|%[yz]mm\d+\{|vcmp|vpcmp")


@pytest.mark.parametrize("kernel", [add, softmax])
def test_code_does_not_grow_with_the_block(kernel: JITFunction) -> None:
    """A block of 65,536 lanes compiles to as many operations and about as much code as one of 256."""
    small, large = (compile_at(kernel, "x86-64-v3", BLOCK=block) for block in (256, 65_536))
    assert small.forms.placed.count("\n") == large.forms.placed.count("\n")
    assert len(large.object_code) <= 1.1 * len(small.object_code)


@pytest.mark.parametrize("level", ["x86-64-v2", *LEVELS])
def test_exponentials_are_not_calls(level: str) -> None:
    """Mathematical functions are code in the loop, at every level."""
    assembly = compile_at(softmax, level, BLOCK=1024).assembly
    assert not re.search(r"\bcallq?\b", assembly)


@pytest.mark.parametrize("level", LEVELS)
def test_block_pointers_and_descriptors_are_pointers(level: str) -> None:
    """The product's loop is that of pointers, and no element is fetched by itself."""
    blocks = {"BM": 64, "BN": 64, "BK": 32}
    strides = {"ak": 1, "bn": 1}
    for kernel, constants in ((window_product, strides), (window_descriptors, {})):
        assembly = compile_at(kernel, level, **blocks, **constants).assembly
        assert "gather" not in assembly
        products = [loop for loop in innermost_loops(assembly) if loop.count(r"vfmadd\d+ps")]
        assert products
        for loop in products:
            assert loop.count(r"vfmadd\d+ps") >= 8
            assert not loop.count(r"vfmadd\d+ss|\(%rsp|\bcall")


@pytest.mark.parametrize("level", LEVELS)
def test_renamed_lanes_are_whole_vectors(level: str) -> None:
    """Interleaved, taken apart, turned and joined: vectors and shuffles, no element by itself."""
    assembly = compile_at(renamed, level, N=1024).assembly
    assert not re.search(r"gather|scatter|vpinsr|vpextr|vextractps|vinsertps", assembly)
    assert not any(loop.count("vmovss") for loop in innermost_loops(assembly))


@jit
def window_product(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # type: ignore[no-untyped-def]
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a_ptr, (M, K), (am, ak), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b_ptr, (K, N), (bk, bn), (0, j), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1)), total)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    out = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


@jit
def window_descriptors(  # type: ignore[no-untyped-def]
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    left = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i, k]), right.load([k, j]), total)
    out.store([i, j], total)


@jit
def renamed(x_ptr, y_ptr, z_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i, both = tl.arange(0, N), tl.arange(0, 2 * N)
    a, b = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(z_ptr + both, tl.interleave(a, b))
    tl.store(z_ptr + 2 * N + both, tl.cat(a, b))
    tl.store(z_ptr + 4 * N + i, tl.flip(a))
    even, odd = tl.split(tl.reshape(tl.load(x_ptr + both), (N, 2)))
    tl.store(z_ptr + 5 * N + i, even - odd)

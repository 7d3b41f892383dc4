"""What the machine code of the examples looks like, at several CPU levels.

Levels that the host lacks are compiled all the same, and read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from blocklang.compiler import CompiledKernel, CompileOptions, compile_kernel
from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.types import F32, I32, PointerType
from blocklang.jit import JITFunction
from blocklang.target import Target, target_for
from examples.matmul import matmul
from examples.softmax import softmax
from examples.vector_add import add
from tests.codegen.kernels import remainder, remainder_f64, renamed, window_descriptors, window_product

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


def compile_at(
    kernel: JITFunction, level: str | Target, alias: str = "disjoint", /, **constants: object
) -> CompiledKernel:
    """Compile for a CPU level, or another CPU: pointers to f32 for `*_ptr`, i32 for the rest, and the given
    constants.
    """

    def argument(name: str) -> Argument:
        if name in constants:
            return Argument(name, constexpr=constants[name])
        return Argument(name, type=PointerType(F32) if name.endswith("_ptr") else I32)

    source = kernel.source
    assert isinstance(source, KernelSource)
    ir = build_kernel(source, [argument(p.name) for p in kernel.params])
    ir.attributes["alias"] = alias
    target = target_for(level) if isinstance(level, str) else level
    return compile_kernel(ir, options=CompileOptions(target=target))


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
    """The main loop has unmasked vector loads and stores, and nothing but addition; so has the one for large
    launches, whose stores bypass the caches.
    """
    loops = innermost_loops(compile_at(add, level, BLOCK=1024).assembly)
    full = [loop for loop in loops if loop.count(r"vaddps") and not loop.count(r"\{%k|vmaskmov")]
    (streaming,) = (loop for loop in full if loop.count("vmovntps"))
    (main,) = (loop for loop in full if loop is not streaming)
    assert streaming.count(r"vmovups\s+\S*\([^,]*,[^,]*,\d\), %[yz]mm") == streaming.count("vaddps") == 1
    assert not streaming.count(r"vmovups\s+%|gather|scatter|\bcall|vcmp|vpcmp")
    moved = main.count(r"vmovups\s+%[yz]mm\d+, \S*\(")
    assert moved == main.count("vaddps") > 0
    assert not main.count(r"gather|scatter|\bcall|%[yz]mm\d+\{|vcmp|vpcmp")


@pytest.mark.parametrize("kernel", [add, softmax])
def test_code_does_not_grow_with_the_block(kernel: JITFunction) -> None:
    """A block of 65,536 lanes compiles to as many operations and about as much code as one of 256."""
    small, large = (compile_at(kernel, "x86-64-v3", BLOCK=block) for block in (256, 65_536))
    assert small.forms.placed.count("\n") == large.forms.placed.count("\n")
    assert len(large.object_code) <= 1.1 * len(small.object_code)


def calls(assembly: str) -> list[str]:
    """What the code calls, but for the entry's call of its own programs."""
    called = re.findall(r"\bcallq?\s+(\S+)", assembly)
    return [name for name in called if not name.endswith(".programs")]


@pytest.mark.parametrize("level", ["x86-64-v2", *LEVELS])
def test_exponentials_are_not_calls(level: str) -> None:
    """Mathematical functions are code in the loop, at every level."""
    assembly = compile_at(softmax, level, BLOCK=1024).assembly
    assert not calls(assembly)


@pytest.mark.parametrize("level", ["x86-64-v2", *LEVELS])
@pytest.mark.parametrize("kernel", [remainder, remainder_f64])
def test_remainders_of_floats_are_not_calls(kernel: JITFunction, level: str) -> None:
    """Vector code at every level, for whole blocks and for a block's rest."""
    for block in (1, 1000):
        assembly = compile_at(kernel, level, BLOCK=block).assembly
        assert not calls(assembly)
        assert "fmod" not in assembly
    assert "divpd" in compile_at(kernel, level, BLOCK=1024).assembly


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

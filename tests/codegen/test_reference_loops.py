"""The machine code of the ten reference kernels for CPUs that the host may not be: x86-64-v4 and AArch64.

The loops that compute hold vectors in registers: no call, and nothing of theirs on the stack. What LLVM
keeps there all the same is in `KEPT`, loop by loop; a loop that is not listed has none. Vector registers
count, and every store: addresses and bounds that do not change are read again where general registers run
out, a load that no arithmetic waits for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest

from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.target import target_for
from tests.codegen.test_compile_effort import REFERENCES, block_ir

LEVELS = ("x86-64-v4", "aarch64")

# What a line of assembly is, in AT&T's syntax for x86-64 and in ARM's.
_JUMP = re.compile(r"\s+(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:.*, )?(\.L\w+)$")
_CALL = re.compile(r"\s+(?:callq?|blr?)\s")
_STACK = re.compile(r"\(%rsp\)|\[sp\b")
_VECTOR = re.compile(r"%[xyz]mm|%k\d|\b[qdsv]\d+\b")
_STACK_STORE = re.compile(r"\s(?:st[rp]\s|k?v?mov\w*\s+[%$]\S+, \S*\(%rsp\)|\w+\s+[%$]\S+, \S*\(%rsp\)$)")
_ARITHMETIC = re.compile(
    r"\sv(?:f?n?m?(?:add|sub|mul)|f\w+|add|sub|mul|div|min|max|sqrt)\w*p[sd]\s|\s(?:fml[as]|fadd|fsub|fmul|fdiv)\s+v\d"
)

# Per level and kernel: the loops that are not free of it, each with how many of its instructions move vectors
# from or to the stack or store there, the most first; and why.
_SUMS = """float sums take 32 lanes a step on every CPU (docs/semantics.md), here 8 registers for each value,
and the constants of the exponential are in registers too: 36 of 291 instructions of softmax's loop"""
_DIVIDE = "a step's lanes divide as f64, 4 registers for each value; what is on the stack does not change"
_MASK = "a mask that is needed at the loop's end, and a constant of a loop over rows"
KEPT: dict[tuple[str, str], tuple[tuple[int, ...], str]] = {
    ("x86-64-v4", "remainder"): ((3, 3, 3), _DIVIDE),
    ("x86-64-v4", "attention"): ((2, 2, 2, 1), _MASK),
    ("aarch64", "softmax"): ((36, 2), _SUMS),
    ("aarch64", "remainder"): ((15, 14, 9, 7), _DIVIDE),
    ("aarch64", "attention"): ((40, 36, 36, 30, 7, 7, 4, 2, 1, 1), _SUMS),
    ("aarch64", "attention, sums"): ((8,), _SUMS),
    ("aarch64", "attention, gradients"): (
        (6, 3, 2, 2),
        "the exponential's constants, and 4 registers a value",
    ),
}


@dataclass(frozen=True)
class Loop:
    """An innermost loop: the lines from its label to the jump back."""

    lines: tuple[str, ...]

    def has(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(line) for line in self.lines)

    @property
    def kept(self) -> int:
        """How many of its instructions move vectors from or to the stack, or store anything there."""
        stack = [line for line in self.lines if _STACK.search(line)]
        return sum(bool(_VECTOR.search(line) or _STACK_STORE.search(line)) for line in stack)


def innermost_loops(assembly: str) -> list[Loop]:
    """The runs of lines from a label to a jump back to it, with no other jump back inside."""
    lines = assembly.splitlines()
    labels = {match[1]: i for i, line in enumerate(lines) if (match := re.match(r"(\.L\w+):", line))}
    back = []
    for end, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and labels.get(jump[1], end) < end:
            back.append((labels[jump[1]], end))
    ends = [end for _, end in back]
    inner = [(start, end) for start, end in back if not any(start <= other < end for other in ends)]
    return [Loop(tuple(lines[start : end + 1])) for start, end in inner]


@cache
def computing_loops(level: str, name: str) -> list[Loop]:
    """The innermost loops of a reference kernel that compute with vectors of floats."""
    compiled = compile_kernel(block_ir(name), options=CompileOptions(target=target_for(level)))
    return [loop for loop in innermost_loops(compiled.assembly) if loop.has(_ARITHMETIC)]


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("level", LEVELS)
def test_loops_call_nothing(level: str, name: str) -> None:
    loops = computing_loops(level, name)
    assert loops or name == "renamed"
    assert not [line for loop in loops for line in loop.lines if _CALL.match(line)]


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("level", LEVELS)
def test_loops_stay_in_registers(level: str, name: str) -> None:
    kept = sorted((loop.kept for loop in computing_loops(level, name) if loop.kept), reverse=True)
    allowed, _ = KEPT.get((level, name), ((), ""))
    assert len(kept) == len(allowed), f"update KEPT: {kept}"
    assert all(a <= b for a, b in zip(kept, allowed, strict=True)), kept


@pytest.mark.parametrize("name", ["matmul", "windows", "attention", "attention, gradients"])
@pytest.mark.parametrize("level", LEVELS)
def test_products_stay_in_registers(level: str, name: str) -> None:
    """Whatever is allowed elsewhere: the loops over k of matrix products, with 64 and more multiply-adds a
    round, touch no stack.
    """
    pattern = re.compile(r"\svfmadd\d+ps\s.*%zmm|\sfmla\s+v\d+\.4s.*\.s\[")
    loops = computing_loops(level, name)
    products = [loop for loop in loops if sum(bool(pattern.search(x)) for x in loop.lines) >= 64]
    assert products
    assert not [line for loop in products for line in loop.lines if _STACK.search(line)]


def test_the_reader_sees_calls_and_spills() -> None:
    """On a loop that has both, in both syntaxes."""
    x86 = """
.LBB0_1:
\tvmovups\t(%rdi), %zmm0
\tvaddps\t%zmm1, %zmm0, %zmm0
\tvmovups\t%zmm0, 64(%rsp)
\tcallq\tfmod@PLT
\tvaddps\t-64(%rsp), %zmm0, %zmm0
\tmovq\t8(%rsp), %rax
\tmovq\t%rax, 16(%rsp)
\tjne\t.LBB0_1
"""
    arm = """
.LBB0_1:
\tldr\tq0, [x0]
\tfadd\tv0.4s, v0.4s, v1.4s
\tstr\tq0, [sp, #64]
\tbl\tfmod
\tldp\tq0, q1, [sp, #32]
\tldr\tx8, [sp, #8]
\tstr\tx8, [sp, #16]
\tcbnz\tx8, .LBB0_1
"""
    for text in (x86, arm):
        (loop,) = innermost_loops(text)
        assert loop.has(_ARITHMETIC)
        assert loop.has(_CALL)
        assert loop.kept == 3

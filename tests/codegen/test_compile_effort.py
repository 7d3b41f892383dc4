"""How much work a compilation is, counted: lines of LLVM IR, rules tried, calls of functions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from blocklang.codegen.kernel import emit_module
from blocklang.codegen.objects import LLVM_STAGES
from blocklang.compiler import compile_kernel
from blocklang.compiler.stages import warn_if_slow
from blocklang.diagnostics import SlowCompilationWarning
from blocklang.ir.core import Kernel, Operation
from blocklang.ir.rewriting import clone_kernel
from blocklang.jit import JITFunction
from blocklang.ops.tile import ContractBuffers
from blocklang.passes import canonicalise
from blocklang.passes.pipeline import pass_names, run_pipeline
from blocklang.target import target_for
from examples.layer_norm import layer_norm
from examples.matmul import matmul
from examples.softmax import softmax
from examples.vector_add import add
from tests.codegen.kernels import remainder, renamed, window_product
from tests.programs.attention_kernels import _attn_bwd, _attn_bwd_preprocess, _attn_fwd

TARGET = target_for("x86-64-v3")
_STRIDED = ",".join(["*fp32"] * 3 + ["fp32"] + ["*fp32"] * 2 + ["i32"] * 19)
_BACKWARD = ",".join(["*fp32"] * 3 + ["fp32"] + ["*fp32"] * 6 + ["i32"] * 6)
_BLOCKS = {"BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32, "BLK_SLICE_FACTOR": 2}

# Kernel, types, constants, and the lines of LLVM IR that it may take: a tenth above what it takes.
REFERENCES: dict[str, tuple[JITFunction, str, dict[str, Any], int]] = {
    "add": (add, "*fp32,*fp32,*fp32,i32", {"BLOCK": 1024}, 260),
    "softmax": (softmax, "*fp32,*fp32,i32,i32,i32", {"BLOCK": 1024}, 550),
    "layer norm": (layer_norm, "*fp32,*fp32,*fp32,*fp32,i32,i32,fp32", {"BLOCK": 1024}, 470),
    "matmul": (
        matmul,
        "*fp32,*fp32,*fp32" + ",i32" * 9,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8},
        2150,
    ),
    "windows": (window_product, "*fp32,*fp32,*fp32" + ",i32" * 7, {"BM": 64, "BN": 64, "BK": 32}, 1820),
    "renamed": (renamed, "*fp32,*fp32,*fp32", {"N": 256}, 210),
    "remainder": (remainder, "*fp32,*fp32,i32", {"BLOCK": 256}, 620),
    "attention": (_attn_fwd, _STRIDED, {"HEAD_DIM": 64, "BLOCK_M": 128, "BLOCK_N": 64, "STAGE": 3}, 4600),
    "attention, sums": (_attn_bwd_preprocess, "*fp32,*fp32,*fp32,i32", {"BLOCK_M": 128, "HEAD_DIM": 64}, 385),
    "attention, gradients": (_attn_bwd, _BACKWARD, {**_BLOCKS, "HEAD_DIM": 64, "CAUSAL": True}, 9350),
}


def block_ir(name: str) -> Kernel:
    function, types, constants, _ = REFERENCES[name]
    return function.block_ir(function.specialise(types, constants))


def llvm_ir(kernel: Kernel) -> tuple[Kernel, str]:
    """The placed kernel, and its LLVM IR."""
    placed = run_pipeline(clone_kernel(kernel), TARGET).kernel
    return placed, emit_module(placed, TARGET, "measured")


@pytest.mark.parametrize("name", REFERENCES)
def test_lines_of_llvm_ir(name: str) -> None:
    lines = llvm_ir(block_ir(name))[1].count("\n")
    assert lines <= REFERENCES[name][3]


def test_a_loop_is_emitted_whole_masked_and_one_lane_a_step() -> None:
    """And once more whole, for launches that store past the caches."""
    additions = [line for line in llvm_ir(block_ir("add"))[1].splitlines() if " = fadd " in line]
    assert [line.split()[3].startswith("<") for line in additions] == [True, True, True, False]


def test_products_of_one_form_are_one_function() -> None:
    placed, text = llvm_ir(block_ir("attention, gradients"))
    products = sum(isinstance(op, ContractBuffers) for op in placed.walk())
    assert products == text.count("call void @part") == 14
    assert text.count("define internal void @part") == 4


@pytest.mark.parametrize("name", REFERENCES)
def test_no_operation_is_simplified_more_than_thrice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rules look at, in all four runs together, per operation that there is in one of them."""
    tried = 0
    apply = canonicalise._apply

    def count(op: Operation) -> bool:
        nonlocal tried
        tried += 1
        return apply(op)

    monkeypatch.setattr(canonicalise, "_apply", count)
    largest = 0
    runs = 0

    def note(pass_name: str, kernel: Kernel) -> None:
        nonlocal largest, runs
        largest = max(largest, sum(1 for _ in kernel.walk()))
        runs += 1

    run_pipeline(clone_kernel(block_ir(name)), TARGET, observer=note)
    assert runs > 4
    assert tried <= 4 * 3 * largest


def calls_of_compiling(path: Path, lines: list[str]) -> int:
    """How many functions of Python run while a kernel with these lines in its middle is compiled."""
    text = ["import blocklang as bl", "import blocklang.language as tl", "@bl.jit"]
    text += ["def kernel(o, x, s, B: bl.constexpr):", "    i = tl.arange(0, B)", "    v = tl.load(x + i)"]
    path.write_text("\n".join([*text, *lines, "    tl.store(o + i, v)", ""]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.kernel
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        llvm_ir(kernel.block_ir(kernel.specialise("*fp32,*fp32,i32", {"B": 64})))
    finally:
        sys.setprofile(before)
    return calls


def chain(length: int) -> list[str]:
    return [f"    v = v * {1 + n % 3}.25 + {n}.5" for n in range(length)]


def arms(count: int) -> list[str]:
    tests = [(f"    {'elif' if n else 'if'} s == {n}:", f"        v = v + {n}.5") for n in range(count)]
    return [line for test in tests for line in test] + ["    else:", "        v = v * 2"]


@pytest.mark.parametrize("lines", [chain, arms])
def test_twice_the_program_is_not_much_more_than_twice_the_work(lines: Any, tmp_path: Path) -> None:
    calls_of_compiling(tmp_path / "first.py", lines(4))  # fills caches
    small = calls_of_compiling(tmp_path / "small.py", lines(40))
    large = calls_of_compiling(tmp_path / "large.py", lines(80))
    assert large <= 2.5 * small


def test_a_slow_compilation_names_its_slowest_stage() -> None:
    kernel = block_ir("add")
    with pytest.warns(SlowCompilationWarning, match=r"compiling add took 7\.5 s, 5\.0 s of it place"):
        warn_if_slow(kernel, {"frontend": 1.0, "place": 5.0, "llvm_passes": 1.5})
    warn_if_slow(kernel, {"frontend": 1.0, "place": 3.9})


def test_every_stage_is_timed() -> None:
    compiled = compile_kernel(block_ir("add"))
    named = list(compiled.seconds)
    assert named[0] == "frontend"
    assert named[-4:] == ["emit_llvm", *LLVM_STAGES]
    assert {"schedule", *pass_names()} < {*named}
    assert all(seconds >= 0 for seconds in compiled.seconds.values())

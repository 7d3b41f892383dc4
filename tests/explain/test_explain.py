"""Reports of five examples and of kernels with every class of access, for one CPU level: golden files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from blocklang.cli import main
from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.explain import Access, Report, explain_kernel, format_report
from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.types import F32, I32, PointerType
from blocklang.jit import JITFunction
from blocklang.target import target_for
from examples.blur import blur
from examples.layer_norm import layer_norm
from examples.matmul import matmul
from examples.softmax import softmax
from examples.vector_add import add
from tests.explain import kernels

LEVEL = "x86-64-v3"

EXAMPLES: dict[str, tuple[JITFunction, dict[str, object]]] = {
    "vector_add": (add, {"BLOCK": 1024}),
    "softmax": (softmax, {"BLOCK": 1024}),
    "layer_norm": (layer_norm, {"BLOCK": 1000}),
    "matmul": (
        matmul,
        {
            "BLOCK_M": 64,
            "BLOCK_N": 128,
            "BLOCK_K": 64,
            "GROUP_M": 8,
            "stride_ak": 1,
            "stride_bn": 1,
            "stride_cn": 1,
        },
    ),
    "blur": (blur, {"COLOURS": 3, "BLOCK_H": 16, "BLOCK_W": 256}),
    "gathered": (kernels.gathered, {"BLOCK": 256}),
    "rows_of_a_table": (kernels.rows_of_a_table, {"ROWS": 8, "COLS": 64}),
    "transposed": (kernels.transposed, {"N": 32}),
    "strides_of_the_launch": (kernels.strides_of_the_launch, {"BLOCK": 128}),
    "shapes_of_access": (kernels.shapes_of_access, {"BLOCK": 256}),
    "histogram_of": (kernels.histogram_of, {"BLOCK": 64}),
}


def block_ir(kernel: JITFunction, **constants: object) -> Kernel:
    """The kernel for disjoint arrays of f32, or of i32 by their names, with every other argument an i32."""

    def argument(name: str) -> Argument:
        if name in constants:
            return Argument(name, constexpr=constants[name])
        if name.endswith("_index"):
            return Argument(name, type=PointerType(I32))
        return Argument(name, type=PointerType(F32) if name.endswith("_ptr") else I32)

    source = kernel.source
    assert isinstance(source, KernelSource)
    ir = build_kernel(source, [argument(p.name) for p in kernel.params])
    ir.attributes["alias"] = "disjoint"
    return ir


def report_of(name: str) -> Report:
    kernel, constants = EXAMPLES[name]
    return explain_kernel(block_ir(kernel, **constants), target_for(LEVEL))


def accesses(report: Report) -> Iterator[Access]:
    return (access for line in report.lines for access in line.accesses)


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", format_report(report_of(name)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_lines_show_the_source(name: str) -> None:
    """Every line is one of the kernel's file, and its accesses are calls that stand on it."""
    report = report_of(name)
    with open(report.file, encoding="utf-8") as file:
        source = file.read().splitlines()
    for line in report.lines:
        assert line.text == source[line.number - 1].strip()
        for access in line.accesses:
            assert f"tl.{access.operation}" in line.text


@pytest.mark.parametrize("name", EXAMPLES)
def test_gathers_are_those_of_the_machine_code(name: str) -> None:
    """A report without a gather, in the fast versions and the others, is a module without one."""
    kernel, constants = EXAMPLES[name]
    report = report_of(name)
    llvm = compile_kernel(
        block_ir(kernel, **constants), options=CompileOptions(target=target_for(LEVEL))
    ).llvm_ir
    slow = ("gather", "strided")
    said = any(
        access.operation == "load"
        and (access.form in slow or any(g.otherwise in slow for g in access.guards))
        for access in accesses(report)
    )
    assert said == ("@llvm.masked.gather" in llvm)


def test_bytes_are_those_of_the_plan() -> None:
    report = report_of("matmul")
    kernel, constants = EXAMPLES["matmul"]
    compiled = compile_kernel(block_ir(kernel, **constants), options=CompileOptions(target=target_for(LEVEL)))
    assert report.scratch_bytes == compiled.abi.scratch_bytes
    assert sum(k.bytes for k in report.kept) <= report.scratch_bytes
    assert {k.name for k in report.kept} == {
        b.name.removesuffix("_buf").removesuffix("_packed") for b in compiled.abi.buffers
    }


def test_a_stride_of_the_launch() -> None:
    (load,) = [a for a in accesses(report_of("strides_of_the_launch")) if a.operation == "load"]
    assert load.form == "consecutive"
    assert [g.conditions for g in load.guards if "column must be 1" in g.conditions]
    assert load.guards[-1].otherwise == "strided"


def test_the_reason_of_a_gather() -> None:
    (load,) = [a for a in accesses(report_of("gathered")) if a.array == "table_ptr"]
    assert load.form == "gather"
    assert "loads" in load.why


# ---- the command ----

SIGNATURE = ("--sig", "*fp32:16,*fp32:16,*fp32:16,i32", "-D", "BLOCK=1024")


def invoke(*arguments: str) -> str:
    os.environ["BLOCKLANG_CPU"] = LEVEL
    try:
        result = CliRunner().invoke(main, ["explain", "examples/vector_add.py", *arguments])
    finally:
        del os.environ["BLOCKLANG_CPU"]
    assert result.exit_code == 0, result.output
    return result.stdout


def test_command() -> None:
    text = invoke(*SIGNATURE)
    assert text.startswith("add (vector_add.py) on x86-64-v3")
    assert "needs guard 1; else: the general loop, one lane a step" in text


def test_json() -> None:
    data = json.loads(invoke("--json", *SIGNATURE))
    assert data["kernel"] == "add"
    assert {a["form"] for line in data["lines"] for a in line["accesses"]} == {"consecutive"}


def test_colours_take_nothing_away() -> None:
    assert CliRunner().invoke(main, ["explain", "--help"]).exit_code == 0
    coloured, plain = invoke("--color", *SIGNATURE), invoke("--no-color", *SIGNATURE)
    assert "\x1b[" in coloured
    import click

    assert click.unstyle(coloured) == plain


def test_ir_of_a_lower_level_is_refused() -> None:
    result = CliRunner().invoke(main, ["explain", "tests/cli/golden/lowered.blir"])
    assert result.exit_code == 2
    assert "expected a kernel of level block" in result.stderr
    assert "help: start from Block IR" in result.stderr

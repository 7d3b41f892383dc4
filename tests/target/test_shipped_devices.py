"""The shipped descriptions: complete, sourced, and their formulas by hand-computed numbers."""

from __future__ import annotations

import pickle
import tomllib
from typing import Any

import pytest

from blocklang.diagnostics import UsageError
from blocklang.target import device_names, find_device
from blocklang.target.device_file import parse_device
from blocklang.target.device_report import list_figures, source_text, to_dict
from blocklang.target.device_search import HOST, shipped_names, shipped_text

SUB_MUL = {"dtype": "bf16", "op": "sub", "op2": "mul"}
NEURON = ("trn1", "trn2", "trn3")


def test_what_is_shipped() -> None:
    assert shipped_names() == ("a100", "h100", "h200", "mi300x", "trn1", "trn2", "trn3")
    assert device_names() == tuple(sorted((*shipped_names(), HOST)))


@pytest.mark.parametrize("name", device_names())
def test_every_figure_has_a_source(name: str) -> None:
    device = find_device(name)
    figures = list(list_figures(device))
    assert figures
    for each in figures:
        assert source_text(device, each.figure.source).strip(), each
    assert all(row.source for row in device.costs)
    assert all(row.source for row in device.rules)
    assert all(row.source for row in device.published)


@pytest.mark.parametrize("name", shipped_names())
def test_every_number_of_a_file_is_a_figure(name: str) -> None:
    """No number of a file stands without a source beside it."""
    data = tomllib.loads(shipped_text(name))
    values = _values(data)
    rows = sum(
        isinstance(each, dict) for table in ("constants", "chip") for each in data.get(table, {}).values()
    )
    assert values == len(list(list_figures(find_device(name)))) >= rows


def _values(data: Any) -> int:
    if isinstance(data, list):
        return sum(map(_values, data))
    if isinstance(data, dict):
        if "value" in data:
            assert data["source"]
            return 1
        return sum(map(_values, data.values()))
    return 0


@pytest.mark.parametrize("name", shipped_names())
def test_sources_are_used(name: str) -> None:
    device = find_device(name)
    text = shipped_text(name)
    for key in device.sources:
        assert f'source = "{key}' in text or f", {key}" in text or f"from {key}" in text, key


@pytest.mark.parametrize("name", shipped_names())
def test_pickles_and_reads_the_same_again(name: str) -> None:
    device = find_device(name)
    assert pickle.loads(pickle.dumps(device)) == device
    assert parse_device(shipped_text(name), "again") == device
    assert to_dict(device)["name"] == name


CYCLES: list[tuple[str, str | None, dict[str, Any], dict[str, float]]] = [
    ("nc_matmul", None, {"N_stationary": 128, "N_moving": 512, "dtype": "f32"}, dict.fromkeys(NEURON, 2048)),
    ("nc_matmul", None, {"N_stationary": 128, "N_moving": 512, "dtype": "bf16"}, dict.fromkeys(NEURON, 512)),
    ("nc_matmul", None, {"N_stationary": 32, "N_moving": 16, "dtype": "bf16"}, dict.fromkeys(NEURON, 32)),
    ("nc_matmul", None, {"N_stationary": 128, "N_moving": 16, "dtype": "bf16"}, dict.fromkeys(NEURON, 64)),
    ("load_stationary", None, {"N_stationary": 128}, dict.fromkeys(NEURON, 32)),
    ("nc_matmul_double_row", None, {"N_stationary": 128, "N_moving": 512}, {"trn2": 512, "trn3": 512}),
    ("nc_matmul_mx", None, {"N_stationary": 128, "N_moving": 512}, {"trn3": 512}),
    ("nc_transpose", None, {"P": 128, "F": 32}, dict.fromkeys(NEURON, 128)),
    ("nc_transpose", None, {"P": 16, "F": 512}, dict.fromkeys(NEURON, 64)),
    ("nc_transpose", "vector", {"N": 32}, dict.fromkeys(NEURON, 64)),
    ("activation", None, {"N": 512}, dict.fromkeys(NEURON, 512)),
    ("activation", None, {"N": 1}, dict.fromkeys(NEURON, 64)),
    ("activation_reduce", None, {"N": 512}, dict.fromkeys(NEURON, 576)),
    ("tensor_scalar_reduce", None, {"N": 10}, dict.fromkeys(NEURON, 128)),
    ("tensor_copy", None, {"N": 1024, "dtype": "f32"}, dict.fromkeys(NEURON, 1024)),
    ("tensor_copy", None, {"N": 1024, "dtype": "bf16"}, {"trn1": 1024, "trn2": 256, "trn3": 256}),
    ("tensor_copy", None, {"N": 1024, "dtype": "bf16", "contiguous": False}, {"trn1": 1024, "trn2": 512}),
    ("tensor_copy", None, {"N": 1024, "dtype": "bf16", "psum_inputs": 1}, {"trn1": 1024, "trn2": 512}),
    ("tensor_copy", "scalar", {"N": 1024, "dtype": "bf16"}, {"trn1": 1024, "trn2": 1024, "trn3": 512}),
    ("tensor_tensor", None, {"N": 512, "dtype": "f32", "op": "add"}, dict.fromkeys(NEURON, 1024)),
    ("tensor_tensor", None, {"N": 512, "dtype": "f32", "psum_inputs": 1}, dict.fromkeys(NEURON, 512)),
    ("tensor_tensor", None, {"N": 512, "dtype": "bf16", "op": "mul"}, dict.fromkeys(NEURON, 512)),
    ("tensor_tensor", None, {"N": 512, "dtype": "bf16", "op": "max"}, {"trn1": 1024, "trn2": 512}),
    ("scalar_tensor_tensor", None, {"N": 100, **SUB_MUL}, dict.fromkeys(NEURON, 100)),
    ("scalar_tensor_tensor", None, {"N": 101, **SUB_MUL}, dict.fromkeys(NEURON, 202)),
    ("tensor_tensor_scan", None, {"N": 512}, dict.fromkeys(NEURON, 1024)),
    ("tensor_reduce", None, {"N": 512, "dtype": "bf16", "op": "max"}, dict.fromkeys(NEURON, 256)),
    ("tensor_reduce", None, {"N": 512, "dtype": "f32", "op": "max"}, dict.fromkeys(NEURON, 512)),
    ("tensor_copy_predicated", None, {"N": 512}, dict.fromkeys(NEURON, 1024)),
    ("tensor_copy_predicated", None, {"N": 512, "psum_inputs": 1}, dict.fromkeys(NEURON, 512)),
    ("reciprocal", None, {"N": 512}, dict.fromkeys(NEURON, 4096)),
    ("reciprocal", "scalar", {"N": 512}, dict.fromkeys(NEURON, 512)),
    ("rsqrt", "gpsimd", {"N": 512}, dict.fromkeys(NEURON, 2048)),
    ("memset", None, {"N": 512, "dtype": "bf16", "zero": True}, dict.fromkeys(NEURON, 256)),
    ("memset", None, {"N": 512, "dtype": "f32", "zero": True}, dict.fromkeys(NEURON, 512)),
    ("bn_aggr", None, {"N": 48}, dict.fromkeys(NEURON, 208)),
    ("max8", None, {"N": 512}, dict.fromkeys(NEURON, 512)),
    ("nc_match_replace8", None, {"N": 8}, dict.fromkeys(NEURON, 64)),
    ("iota", None, {"N": 512}, dict.fromkeys(NEURON, 662)),
    # e = 4: C = ((28 + 16) / 16) / min(4 / 4, 4) = 2.75
    ("local_gather", None, {"valid_idx": 11, "elem_per_idx": 4, "dtype_bytes": 4}, {"trn2": 166}),
    ("tensor_copy_dynamic_src", None, {"N": 512}, dict.fromkeys(NEURON, 600)),
    ("topk", None, {"N": 512, "K": 8}, dict.fromkeys(NEURON, 2056)),
    ("exponential", None, {"N": 512}, {"trn3": 128}),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "engine", "quantities", "expected"), CYCLES)
def test_cycles(
    instruction: str, engine: str | None, quantities: dict[str, Any], expected: dict[str, float]
) -> None:
    for name, cycles in expected.items():
        device = find_device(name)
        cost = device.cost(instruction, engine=engine, **quantities)
        assert cost.cycles == pytest.approx(cycles), name
        assert cost.seconds == pytest.approx(cycles / device.engines[cost.engine].clock_hz)


def test_every_instruction_has_hand_computed_cycles() -> None:
    tested = {instruction for instruction, *_ in CYCLES}
    same_row = {"bn_stats", "range_select", "dropout", "nc_stream_shuffle", "tensor_scalar", "affine_select"}
    same_row |= {"nc_find_index8", "tensor_copy_dynamic_dst"}
    for name in NEURON:
        assert set(find_device(name).instructions) <= tested | same_row


def test_the_documented_formula_is_near_the_published_matmul() -> None:
    """32 x 16 x 64 products of 2048 cycles: 27.96 ms, 0.8 % from the row with hoisted loads."""
    device = find_device("trn2")
    one = device.cost("nc_matmul", N_stationary=128, N_moving=512, dtype="f32").seconds
    total = 32 * 16 * 64 * one
    assert total == pytest.approx(27.96e-3, rel=1e-3)
    published = next(each for each in device.published if "hoisted" in each.name)
    assert published.seconds == pytest.approx(28.20e-3)
    assert published.active == {"tensor": 0.9985, "dma": 0.9973}
    assert abs(total / 28.20e-3 - 1) < 0.01


def test_copies_of_trn2() -> None:
    dma = find_device("trn2").dma
    assert dma.row_seconds(8192) * 4 == pytest.approx(1416e-9, rel=0.01)  # the published load
    assert dma.row_seconds(64) == pytest.approx(65e-9)
    assert dma.transfer_seconds(17, 64) == pytest.approx(1300e-9 + 2 * 65e-9)
    # The two published results cannot both be met: the matmul whose tiles are loaded for every product moves
    # rows of 512 B and 2 KiB faster than the curve has it. The descriptor's time is the matmul's.
    assert dma.curve is not None
    for size, share in zip(dma.curve.row_bytes, dma.curve.shares, strict=True):
        if size >= 128:  # below, the eye read two digits at most
            rate = size / dma.row_seconds(size) / 23.1e9
            assert share * 0.98 <= rate <= share * 1.75, size
    rows = 128 * dma.row_seconds(512) + 128 * dma.row_seconds(2048)
    matmul = next(p for p in find_device("trn2").published if "every product" in p.name)
    assert 32 * 16 * 64 * rows / dma.engines.value == pytest.approx(matmul.seconds, rel=0.03)


def test_accessors() -> None:
    trn2, h100 = find_device("trn2"), find_device("h100")
    assert trn2.kind == "neuron"
    assert trn2.memory["sbuf"] is trn2.memory["scratch"]
    assert trn2.memory["psum"].bank_bytes == 2048
    assert trn2.engines["tensor"].clock_hz == 2.4e9
    assert trn2.engines["vector"].elements_of("bf16") == 512
    assert trn2.engines["vector"].elements_of("f32") == 256
    assert trn2.engines["scalar"].elements_of("f32") == 128
    assert trn2.core_global_bandwidth == pytest.approx(362.5e9)
    assert trn2.tiles.moving_columns.value == 512
    assert "nc_matmul" in trn2.instructions_of("tensor")
    assert h100.kind == "gpu"
    assert h100.cores == 132
    assert h100.sm.warps is not None
    assert h100.sm.warps.value == 64
    assert h100.caches["l2"].capacity_bytes == 50 << 20
    assert h100.engines["tensor"].ops_per_second("bf16") == 989e12
    assert {each.name: each.rate for each in h100.published}["persistent"] == 799.1e12


@pytest.mark.parametrize(
    ("call", "message", "help"),
    [
        (lambda d: d.cost("nc_matmull"), "trn2 has no cost of nc_matmull", "did you mean nc_matmul?"),
        (lambda d: d.cost("iota", engine="tensor"), "does not run iota on engine tensor", "runs on gpsimd"),
        (lambda d: d.cost("iota"), "GPSIMD_START + N: N has no value", "it is in N (elements per partition)"),
        (lambda d: d.cost("iota", NN=3), "iota: there is no quantity NN", "did you mean N?"),
        (
            lambda d: d.engines["tensor"].ops_per_second("i8"),
            "no throughput for i8",
            "it has bf16, f16, tf32",
        ),
        (lambda d: d.sm, "trn2 has no table [sm]", "kind 'neuron' need not have one"),
    ],
)
def test_questions_without_an_answer(call: Any, message: str, help: str) -> None:
    with pytest.raises(UsageError) as caught:
        call(find_device("trn2"))
    assert message in caught.value.message
    assert help in str(caught.value.help)


def test_a_cost_is_never_negative() -> None:
    text = shipped_text("trn2").replace("'max(MIN_II, 8 * N)'", "'MIN_II - N'")
    with pytest.raises(UsageError, match="reciprocal costs -36 cycles on trn2, by MIN_II - N"):
        parse_device(text, "mine.toml").cost("reciprocal", N=100)


def test_costs_are_kept_and_told_apart() -> None:
    device = find_device("trn2")
    first = device.cost("tensor_copy", N=2048, dtype="bf16")
    assert device.cost("tensor_copy", N=2048, dtype="bf16") is first
    assert device.cost("tensor_copy", N=2048, dtype="f32").cycles == 2048
    assert device.cost("tensor_copy", engine="scalar", N=2048, dtype="bf16").cycles == 2048
    assert pickle.loads(pickle.dumps(device)) == device

"""How full a kernel makes the spaces of a device, and the answer where it does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from blocklang.diagnostics import CompilationError
from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.passes.assign_spaces import assign_spaces
from blocklang.passes.check_capacity import check_capacity, space_usage
from blocklang.passes.plan_memory import plan_memory
from blocklang.target import Device, Figure, find_device

TRN2 = find_device("trn2")


def kernel_with(*lines: str) -> Kernel:
    body = "\n".join(f"  {line}" for line in lines)
    kernel = parse_kernel(f"placed @k() {{\n  %c = constant value=0 : i64\n{body}\n  return\n}}\n")
    plan_memory(kernel)
    assign_spaces(kernel)
    return kernel


def uses(*names: str) -> list[str]:
    """One operation per buffer that uses it: a read at its first element."""
    return [f"%{name}_r{i} = read %{name}, %c : f32" for i, name in enumerate(names)]


def peaks(kernel: Kernel, device: Device = TRN2) -> dict[str, int]:
    return {usage.space: usage.peak_bytes for usage in space_usage(kernel, device)}


def with_scratch(**changes: Any) -> Device:
    space = replace(TRN2.memory["scratch"], **changes)
    return replace(TRN2, memory={**TRN2.memory, "scratch": space})


def test_buffers_of_one_axis_go_over_all_partitions() -> None:
    kernel = kernel_with("%a = buffer : buffer<1000xf32>", *uses("a"))
    assert peaks(kernel)["scratch"] == 128 * 8 * 4  # ceil(1000 / 128) elements in each


def test_rows_go_round() -> None:
    kernel = kernel_with("%a = buffer : buffer<130x64xf32>", "%v = read %a, %c, %c : f32")
    assert peaks(kernel)["scratch"] == 128 * 2 * 64 * 4


def test_few_rows_take_a_row_of_every_partition() -> None:
    kernel = kernel_with("%a = buffer : buffer<2x64xf32>", "%v = read %a, %c, %c : f32")
    assert peaks(kernel)["scratch"] == 128 * 64 * 4


def test_panels_are_padded() -> None:
    kernel = kernel_with("%a = buffer panel=16 : buffer<128x20xf32>", "%v = read %a, %c, %c : f32")
    assert peaks(kernel)["scratch"] == 128 * 32 * 4


def test_a_space_of_one_piece() -> None:
    kernel = kernel_with("%a = buffer : buffer<2x64xf32>", "%v = read %a, %c, %c : f32")
    assert peaks(kernel, find_device("h100"))["scratch"] == 2 * 64 * 4


def test_only_what_lives_at_once_counts() -> None:
    buffers = ["%a = buffer : buffer<256xf32>", "%b = buffer : buffer<512xf32>"]
    one = 128 * 4
    assert peaks(kernel_with(*buffers, *uses("a", "b")))["scratch"] == 4 * one
    assert peaks(kernel_with(*buffers, *uses("a", "b", "a")))["scratch"] == 6 * one


def test_accumulators_have_a_space_of_their_own() -> None:
    kernel = kernel_with(
        "%a = buffer : buffer<64x32xf32>",
        "%b = buffer panel=16 : buffer<32x48xf32>",
        "%acc = buffer : buffer<64x48xf32>",
        "contract_buffers %a, %b, %acc, rows=4, columns=16",
    )
    assert peaks(kernel) == {"scratch": 128 * (32 + 48) * 4, "accumulator": 128 * 48 * 4}


def test_what_fits_just_fits() -> None:
    kernel = kernel_with("%a = buffer : buffer<1024xf32>", *uses("a"))
    check_capacity(kernel, with_scratch(partition_bytes=Figure(32, "invented")))
    with pytest.raises(CompilationError) as caught:
        check_capacity(kernel, with_scratch(partition_bytes=Figure(31, "invented")))
    assert "holds 31 bytes in each of 128 partitions, and 32 bytes are in use" in caught.value.message
    assert "1 bytes too many" in caught.value.message


def test_everything_that_fills_the_space_is_named() -> None:
    kernel = kernel_with(
        "%x_packed_buf = buffer : buffer<64x32xf32>",
        "%total_next_buf = buffer : buffer<64x64xf32>",
        "%gone_buf = buffer : buffer<64x64xf32>",
        "%v = read %gone_buf, %c, %c : f32",
        "%w = read %x_packed_buf, %c, %c : f32",
        "%u = read %total_next_buf, %c, %c : f32",
        "%t = read %x_packed_buf, %c, %c : f32",
    )
    with pytest.raises(CompilationError) as caught:
        check_capacity(kernel, with_scratch(partition_bytes=Figure(300, "invented")))
    rows = str(caught.value.help).splitlines()[1:]
    assert [row.split("|")[0].strip() for row in rows] == [
        "total (its next value)",
        "x (laid out for the product)",
    ]
    assert [row.split("|")[2].strip() for row in rows] == ["256 bytes", "128 bytes"]

"""Where the blocks of a kernel are on a device, and the answer where they do not fit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from blocklang.diagnostics import CompilationError
from blocklang.emulation.placement import Block, Placement, format_placement, place_blocks
from blocklang.ir.parser import parse_kernel
from blocklang.target import Device, find_device

TRN2 = find_device("trn2")


def placement_of(*lines: str, device: Device = TRN2) -> Placement:
    """Of a kernel that loads and stores blocks; `%p` points to f32."""
    body = "\n".join(f"  {line}" for line in lines)
    return place_blocks(parse_kernel(f"kernel @k(%p: ptr<f32>, %n: i32) {{\n{body}\n  return\n}}\n"), device)


def block(name: str, rows: int, columns: int) -> list[str]:
    """A block of addresses of two axes, and the block that is loaded from there."""
    shape = f"{rows}x{columns}"
    return [
        f"%{name}_i = arange start=0, end={columns} : block<{columns}xi32>",
        f"%{name}_j = expand_dims %{name}_i, axis=0 : block<1x{columns}xi32>",
        f"%{name}_k = broadcast %{name}_j, shape=[{rows}, {columns}] : block<{shape}xi32>",
        f"%{name}_q = offset %p, %{name}_k : block<{shape}xptr<f32>>",
        f"%{name} = load %{name}_q : block<{shape}xf32>",
    ]


def store(name: str, to: str) -> str:
    return f"store %{to}_q, %{name}"


def blocks_of(found: Placement) -> dict[str, Block]:
    return {b.name: b for b in found.blocks}


def with_scratch(size: int) -> Device:
    space = TRN2.memory["scratch"]
    assert space.partition_bytes is not None
    space = replace(space, partition_bytes=replace(space.partition_bytes, value=size))
    return replace(TRN2, memory={**TRN2.memory, "scratch": space})


def test_rows_go_round() -> None:
    found = placement_of(*block("a", 130, 64), store("a", "a"))
    assert blocks_of(found)["a"].size == 2 * 64 * 4


def test_a_block_of_one_axis_is_spread() -> None:
    found = placement_of(
        "%i = arange start=0, end=1000 : block<1000xi32>",
        "%q = offset %p, %i : block<1000xptr<f32>>",
        "%a = load %q : block<1000xf32>",
        "store %q, %a",
    )
    assert blocks_of(found)["a"].size == 8 * 4  # ceil(1000 / 128) elements in each


def test_addresses_and_masks_take_nothing() -> None:
    found = placement_of(*block("a", 128, 64), store("a", "a"))
    assert list(blocks_of(found)) == ["a"]


def test_what_lives_at_once_does_not_overlap() -> None:
    lines = [*block("a", 128, 64), *block("b", 128, 32), "%c = add %a, %a : block<128x64xf32>"]
    lines += ["%d = mul %b, %b : block<128x32xf32>", store("c", "a"), store("d", "b"), store("b", "b")]
    found = placement_of(*lines)
    assert {b.name for b in found.blocks} == {"a", "b", "c", "d"}
    for one, other in itertools.combinations(found.blocks, 2):
        lives = one.first <= other.last and other.first <= one.last
        apart = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
        assert apart or not lives


def product(rows: int, columns: int, inner: int) -> list[str]:
    shape = f"block<{rows}x{columns}xf32>"
    return [
        *block("a", rows, inner),
        *block("b", inner, columns),
        *block("o", rows, columns),
        f"%zero = constant value=0.0 : {shape}",
        f"%acc = dot %a, %b, %zero : {shape}",
        store("acc", "o"),
    ]


def test_products_are_in_whole_banks_of_the_accumulator_space() -> None:
    acc = blocks_of(placement_of(*product(64, 48, 32)))["acc"]
    assert (acc.space, acc.size) == ("accumulator", 2048)
    assert blocks_of(placement_of(*product(256, 640, 32)))["acc"].size == 2 * 4096


def test_what_a_loop_carries_has_one_place() -> None:
    found = placement_of(
        *block("a", 128, 64),
        "%lo = constant value=0 : i32",
        "%st = constant value=1 : i32",
        "%r = for %lo, %n, %st, %a : block<128x64xf32> {",
        "  (%i: i32, %x: block<128x64xf32>):",
        "  %y = add %x, %x : block<128x64xf32>",
        "  yield %y",
        "}",
        store("r", "a"),
    )
    assert len(found.blocks) == 1


def test_loads_in_loops_have_as_many_places_as_there_is_room() -> None:
    lines = [
        *block("z", 128, 512),
        "%lo = constant value=0 : i32",
        "%st = constant value=1 : i32",
        "%r = for %lo, %n, %st, %z : block<128x512xf32> {",
        "  (%i: i32, %x: block<128x512xf32>):",
        "  %a = load %z_q : block<128x512xf32>",
        "  %y = add %x, %a : block<128x512xf32>",
        "  yield %y",
        "}",
        store("r", "z"),
    ]
    assert blocks_of(placement_of(*lines))["a"].versions == 16
    assert blocks_of(placement_of(*lines, device=with_scratch(7000)))["a"].versions == 2
    assert blocks_of(placement_of(*lines, device=with_scratch(4096)))["a"].versions == 1


def test_what_fits_just_fits() -> None:
    lines: list[Any] = [*block("a", 128, 64), store("a", "a")]
    assert placement_of(*lines, device=with_scratch(256)).usage[0].peak_bytes == 256 * 128
    with pytest.raises(CompilationError) as caught:
        placement_of(*lines, device=with_scratch(255))
    assert "holds 255 bytes in each of 128 partitions, and 256 bytes are in use" in caught.value.message
    assert "1 bytes too many" in caught.value.message


def test_everything_that_fills_the_space_is_named() -> None:
    lines = [*block("a", 128, 64), *block("b", 128, 32), store("a", "a"), store("b", "b")]
    with pytest.raises(CompilationError) as caught:
        placement_of(*lines, device=with_scratch(300))
    rows = [row.split("|") for row in str(caught.value.help).splitlines()[1:]]
    assert [(row[0].strip(), row[2].strip()) for row in rows] == [("a", "256 bytes"), ("b", "128 bytes")]


def test_a_cpu_refuses_nothing() -> None:
    """Its caches and registers are no places for blocks."""
    found = placement_of(*product(256, 640, 32), device=find_device("host"))
    assert found == Placement((), (), {})


def test_the_plan_as_text() -> None:
    text = format_placement(placement_of(*product(64, 48, 32)))
    assert text.splitlines()[0].split() == ["space", "offset", "bytes", "x", "versions", "block", "lives"]
    assert "accumulator" in text
    assert "acc <64x48xf32>" in text

"""Which block of a kernel fills which part of the memory on the chip, from where to where in the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blocklang.abi import SpaceUsage
from blocklang.emulation.page.markup import OTHER, Place, escape, percent, place_text, table
from blocklang.emulation.placement import Block
from blocklang.target import Device, format_size

_APART = 7.0  # percent of the width that ticks keep from each other
_LEAST, _MOST = 60, 220  # heights, in pixels


def format_placement(
    blocks: Sequence[Block],
    usage: Mapping[str, SpaceUsage],
    device: Device,
    colours: Mapping[Place, str],
) -> str:
    """A picture of every space, and a table of its blocks."""
    if not blocks:
        return '<p class="none">No block of this kernel is kept on the chip.</p>'
    spaces = [name for name in device.on_chip if any(block.space == name for block in blocks)]
    first, last = min(b.first for b in blocks), max(b.last for b in blocks) + 1
    parts = [_picture(name, blocks, usage, device, colours, (first, last)) for name in spaces]
    rows = [
        (
            escape(block.space),
            f"<code>{escape(block.name)}</code> <small>{escape(block.type)}</small>",
            (f"{block.offset:,}", "num"),
            (format_size(block.size), "num"),
            (f"{block.versions}", "num"),
            escape(place_text((block.location.file, block.location.line))),
            f"{block.lines[0]} to {block.lines[1]}",
        )
        for block in blocks
    ]
    head = (
        "space",
        "block",
        ("offset", "num"),
        ("bytes", "num"),
        ("places", "num"),
        "made in",
        "lives in lines",
    )
    return "\n".join(parts) + f"<details><summary>As a table</summary>{table(head, rows)}</details>"


def _picture(
    name: str,
    blocks: Sequence[Block],
    usage: Mapping[str, SpaceUsage],
    device: Device,
    colours: Mapping[Place, str],
    extent: tuple[int, int],
) -> str:
    space = device.memory[name]
    own = [block for block in blocks if block.space == name]
    top = max(block.offset + block.bytes for block in own) or 1
    height = min(_MOST, max(_LEAST, 26 * len(own)))
    parts = "" if space.partitions is None else f" of each of {space.partitions.value} partitions"
    filled = f", {percent(usage[name].peak_bytes / usage[name].capacity_bytes)} full" if name in usage else ""
    title = f"{escape(name)} <small>{escape(space.hardware)}: {format_size(top)}{parts}{filled}</small>"
    boxes = "\n".join(_boxes(own, top, extent, colours))
    ticks = "".join(f'<span style="left:{at:.2f}%">{line}</span>' for at, line in _ticks(own, extent))
    return (
        f'<figure class="space"><h4>{title}</h4><div class="boxes" style="height:{height}px">{boxes}</div>'
        f'<div class="axis">{ticks}</div></figure>'
    )


def _boxes(
    blocks: Sequence[Block], top: int, extent: tuple[int, int], colours: Mapping[Place, str]
) -> Iterator[str]:
    for block in blocks:
        left, right = _across(block, extent)
        low, high = 100 * block.offset / top, 100 * block.bytes / top
        kind = colours.get((block.location.file, block.location.line), OTHER)
        title = (
            f"{block.name} {block.type}\n"
            f"{format_size(block.size)} x {block.versions} from byte {block.offset:,} on\n"
            f"made in line {block.location.line}, lives in lines {block.lines[0]} to {block.lines[1]}"
        )
        yield (
            f'<div class="box {kind}" title="{escape(title)}" style="left:{left:.2f}%;'
            f'width:{right - left:.2f}%;bottom:{low:.2f}%;height:{high:.2f}%">{escape(block.name)}</div>'
        )


def _across(block: Block, extent: tuple[int, int]) -> tuple[float, float]:
    first, last = extent
    return 100 * (block.first - first) / (last - first), 100 * (block.last + 1 - first) / (last - first)


def _ticks(blocks: Sequence[Block], extent: tuple[int, int]) -> Iterator[tuple[float, str]]:
    """The lines that make blocks, where there is room for their numbers."""
    last = -_APART
    for block in sorted(blocks, key=lambda block: block.first):
        left, _ = _across(block, extent)
        if left >= last + _APART and left <= 96:
            yield left, f"line {block.location.line}"
            last = left

"""Device files: TOML to `Device`, with every rule that a file must keep. `docs/device_files.md` is the guide.

    kind = "neuron"

    [sources]
    A2 = "aws-neuron-sdk @81ce03a, nki/guides/architecture/trainium2_arch.rst"

    [engines.tensor]
    hardware = "TensorE"
    clock = { value = "2.4 GHz", source = "A2" }

    [[cost]]
    instructions = ["nc_matmul"]
    engines = ["tensor"]
    cycles = "max(min(64, N_stationary), N_moving) * (4 if dtype == 'f32' else 1)"
    source = "C226"

The keys of a table are the attributes of its class in `device`; a `Figure` there is here
`{ value, source, unverified }`. A source is text, or a key of [sources], alone or
followed by a colon and a remark.

Not here: positions in the text (`device_tables`), and where files are looked for (`device_search`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

from blocklang.diagnostics import UsageError
from blocklang.target.device import (
    KINDS,
    RULES,
    SPACES,
    Cache,
    Chip,
    CostRow,
    Curve,
    Device,
    Dma,
    Engine,
    MemorySpace,
    Multiprocessor,
    Published,
    Rule,
    Tiles,
)
from blocklang.target.device_tables import ABSENT, Table, guess, words
from blocklang.target.figures import QUANTITIES, Figure
from blocklang.target.formulas import NUMBER, FormulaError, parse_formula
from blocklang.target.units import format_quantity, format_size

Described = TypeVar("Described")

# What a kind must describe besides its memory.
NEEDS: dict[str, tuple[str, ...]] = {
    "memory": (),
    "neuron": ("chip", "engines", "cost", "dma", "tiles"),
    "gpu": ("chip", "engines", "sm"),
    "cpu": ("chip",),
}
_TABLES = (
    "sources",
    "constants",
    "chip",
    "memory",
    "caches",
    "engines",
    "cost",
    "dma",
    "tiles",
    "sm",
    "rules",
)
KEYS = ("name", "title", "kind", "note", *_TABLES, "published")
CONTRADICTION = "two figures contradict each other: change the one that is wrong"
NEAR = 0.03  # products of rounded figures may differ by so much


def parse_device(text: str, file: str) -> Device:
    """The device that a text describes.

    Args:
        file: its name, for messages.

    Raises:
        UsageError: it is no TOML, or a figure is missing, unknown or contradictory.
    """
    import tomllib  # no launch needs it

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not a TOML file: {error}") from error
    return _device(Table(file, text, "", data))


def device_of(data: Mapping[str, Any], file: str) -> Device:
    """The device that the tables of a description say; otherwise as `parse_device`."""
    return _device(Table(file, "", "", data))


def _device(table: Table) -> Device:
    table.allow(*KEYS)
    kind = table.one_of("kind", KINDS, "memory")
    for name in NEEDS[kind]:
        if name not in table.data:
            expected = f"[[{name}]]" if name == "cost" else f"a table [{name}]"
            raise table.error(name, f"{expected}, as a device of kind {kind!r} has one", ABSENT, _copy(kind))
    constants = _figures(table, "constants", "number")
    engines = _named(table, "engines", _engine)
    device = Device(
        name=table.text("name"),
        title=table.text("title"),
        kind=kind,
        note=table.text("note", ""),
        memory=_memory(table),
        sources=_sources(table),
        constants=constants,
        chip=_read(table, "chip", Chip),
        engines=engines,
        caches=_named(table, "caches", _cache),
        costs=tuple(_cost(row, engines, constants) for row in table.tables("cost")),
        transfers=_dma(table),
        tile_limits=_read(table, "tiles", Tiles),
        multiprocessor=_read(table, "sm", Multiprocessor),
        rules=tuple(_rule(row, engines) for row in table.tables("rules")),
        published=tuple(_published(row, engines) for row in table.tables("published")),
    )
    _check_sources(table, device.sources)
    _check_costs(table, device)
    _check_products(table, device)
    return device


def _copy(kind: str) -> str:
    shipped = {"neuron": "trn2", "gpu": "h100", "cpu": "host"}[kind]
    return f"`blocklang devices new NAME --from {shipped}` writes a complete file of this kind"


# ---- tables of figures ----


def _figure_fields(described: type[Any]) -> dict[str, tuple[str, str, bool]]:
    """The keys of a class's figures: attribute, dimension, whether it must be there."""
    return {
        each.metadata["key"] or each.name: (each.name, each.metadata["reads"], each.metadata["required"])
        for each in dataclasses.fields(described)
        if "reads" in each.metadata
    }


def _read_figures(table: Table, described: type[Any], *others: str) -> dict[str, Any]:
    """The figures of a table by attribute; `others` are its other keys."""
    fields = _figure_fields(described)
    table.allow(*others, *fields)
    found: dict[str, Any] = {}
    for key, (name, reads, required) in fields.items():
        if required or key in table.data:
            found[name] = table.figure(key, reads)
    return found


def _read(table: Table, name: str, described: type[Described]) -> Described | None:
    if name not in table.data:
        return None
    return described(**_read_figures(table.table(name), described))


def _figures(table: Table, name: str, reads: str) -> dict[str, Figure[Any]]:
    """A table whose keys are free and whose values are figures."""
    if name not in table.data:
        return {}
    found = table.table(name)
    return {key: found.figure(key, reads) for key in found.data}


def _named(table: Table, name: str, read: Any) -> dict[str, Any]:
    if name not in table.data:
        return {}
    found = table.table(name)
    return {key: read(found.table(key), key) for key in found.data}


def _sources(table: Table) -> dict[str, str]:
    if "sources" not in table.data:
        return {}
    found = table.table("sources")
    return {key: found.text(key) for key in found.data}


def _memory(table: Table) -> dict[str, MemorySpace]:
    memory = table.table("memory", "a table of memory spaces")
    memory.allow(*SPACES)
    return {name: _space(memory, name) for name in SPACES if name in memory.data or name != "accumulator"}


def _space(memory: Table, name: str) -> MemorySpace:
    table = memory.table(name, "a memory space")
    figures = _read_figures(table, MemorySpace, "hardware", "aliases")
    space = MemorySpace(
        name=name, hardware=table.text("hardware"), aliases=table.texts("aliases", ()), **figures
    )
    _check_size(table, space)
    return space


def _check_size(table: Table, space: MemorySpace) -> None:
    """A space has a size, said once or twice the same."""
    if (space.partitions is None) != (space.partition_bytes is None):
        missing = "partitions" if space.partitions is None else "partition_bytes"
        raise table.error(missing, "a figure, as partitions and partition_bytes go together", ABSENT)
    if space.partitions is None and space.size is None:
        raise table.error("bytes", "a size, or partitions and partition_bytes", ABSENT)
    if space.size is not None and space.size.value != space.capacity_bytes:
        raise table.error(
            "bytes",
            f"{space.capacity_bytes}, which is partitions x partition_bytes",
            space.size.value,
            CONTRADICTION,
        )


def _cache(table: Table, name: str) -> Cache:
    figures = _read_figures(table, Cache, "per")
    return Cache(name=name, per=table.one_of("per", ("core", "cluster", "chip")), **figures)


def _engine(table: Table, name: str) -> Engine:
    figures = _read_figures(table, Engine, "hardware", "elements_per_cycle", "throughput")
    return Engine(
        name=name,
        hardware=table.text("hardware"),
        elements_per_cycle=_figures(table, "elements_per_cycle", "count"),
        throughput=_figures(table, "throughput", "rate"),
        **figures,
    )


def _dma(table: Table) -> Dma | None:
    if "dma" not in table.data:
        return None
    found = table.table("dma")
    figures = _read_figures(found, Dma, "curve")
    return Dma(curve=_curve(found.table("curve")) if "curve" in found.data else None, **figures)


def _curve(table: Table) -> Curve:
    table.allow("row_bytes", "shares", "source", "unverified")
    rows, shares = table.get("row_bytes", "a list of bytes"), table.get("shares", "a list of shares")
    if not isinstance(rows, list) or not rows or not all(type(each) is int and each > 0 for each in rows):
        raise table.error("row_bytes", "a list of bytes", rows)
    if not isinstance(shares, list) or not all(type(each) in (int, float) for each in shares):
        raise table.error("shares", "a list of shares", shares)
    if len(rows) != len(shares):
        raise table.error("shares", f"{len(rows)} shares, one for each of row_bytes", words(str(len(shares))))
    return Curve(
        row_bytes=tuple(rows),
        shares=tuple(map(float, shares)),
        source=table.text("source"),
        unverified=table.flag("unverified"),
    )


# ---- rows ----


def _cost(table: Table, engines: Mapping[str, Engine], constants: Mapping[str, Figure[Any]]) -> CostRow:
    table.allow(
        "instructions", "engines", "cycles", "source", "unverified", "note", "contraction", "background"
    )
    kinds = {name: quantity.kind for name, quantity in QUANTITIES.items()} | dict.fromkeys(constants, NUMBER)
    try:
        formula = parse_formula(table.text("cycles"), kinds)
    except FormulaError as error:
        expected, _, got = str(error).removeprefix("expected ").partition(", got ")
        raise table.error("cycles", expected, words(got), error.help) from error
    return CostRow(
        instructions=table.texts("instructions"),
        engines=_engine_names(table, engines),
        cycles=formula,
        source=table.text("source"),
        unverified=table.flag("unverified"),
        note=table.text("note", ""),
        contraction=int(table.number("contraction", "count")) if "contraction" in table.data else 1,
        background=table.flag("background"),
    )


def _engine_names(table: Table, engines: Mapping[str, Engine]) -> tuple[str, ...]:
    names = table.texts("engines")
    for name in names:
        if name not in engines:
            raise table.error("engines", f"some of {', '.join(engines)}", name, guess(name, engines))
    return names


def _rule(table: Table, engines: Mapping[str, Engine]) -> Rule:
    kind = table.one_of("rule", RULES)
    keys = {
        "serialise": ("engines", "space", "when"),
        "stride": ("space", "bytes", "factor"),
        "place": ("instructions", "inputs", "outputs"),
    }
    table.allow("rule", "source", "unverified", *keys[kind])
    rule = partial(Rule, rule=kind, source=table.text("source"), unverified=table.flag("unverified"))
    if kind == "place":
        for name in ("inputs", "outputs"):
            for space in table.texts(name):
                if space not in SPACES:
                    raise table.error(name, f"some of {', '.join(SPACES)}", space, guess(space, SPACES))
        return rule(
            instructions=table.texts("instructions"),
            inputs=table.texts("inputs"),
            outputs=table.texts("outputs"),
        )
    space = table.one_of("space", SPACES)
    if kind == "stride":
        size, factor = int(table.number("bytes", "size")), table.number("factor", "number")
        return rule(space=space, bytes=size, factor=factor)
    when = table.one_of("when", ("always", "same_bank", "fast_mode"), "always")
    return rule(space=space, when=when, engines=_engine_names(table, engines))


def _published(table: Table, engines: Mapping[str, Engine]) -> Published:
    table.allow("name", "workload", "time", "rate", "active", "model_error", "source", "unverified")
    if ("time" in table.data) == ("rate" in table.data):
        got = words("both") if "time" in table.data else ABSENT
        raise table.error("time", "either a time or a rate", got)
    active = table.table("active") if "active" in table.data else None
    if active is not None:
        active.allow(*engines, "dma")
    return Published(
        name=table.text("name"),
        workload=table.text("workload"),
        source=table.text("source"),
        unverified=table.flag("unverified"),
        seconds=table.number("time", "time") if "time" in table.data else None,
        rate=table.number("rate", "rate") if "rate" in table.data else None,
        active={} if active is None else {name: active.number(name, "share") for name in active.data},
        model_error=table.number("model_error", "error") if "model_error" in table.data else None,
    )


# ---- what must agree ----


def _check_sources(table: Table, sources: Mapping[str, str]) -> None:
    """Where there are [sources], a source that is one word is a key of them."""
    if not sources:
        return
    for key, source in _sources_in(table.data, ""):
        for part in re.split(r",\s*", source.partition(":")[0]):
            if re.fullmatch(r"[\w-]+", part) and part not in sources:
                raise table.error(key, f"a key of [sources] or text of some words, not {part!r}", source,
                                  guess(part, sources) or f"the keys are {', '.join(sources)}")  # fmt: skip


def _sources_in(value: object, key: str) -> list[tuple[str, str]]:
    """Every `source` in a value, with its key."""
    if isinstance(value, list):
        return [each for n, item in enumerate(value) for each in _sources_in(item, f"{key}[{n}]")]
    if not isinstance(value, dict):
        return []
    found: list[tuple[str, str]] = []
    for name, item in value.items():
        path = f"{key}.{name}" if key else name
        found += [(path, item)] if name == "source" and isinstance(item, str) else _sources_in(item, path)
    return found


def _check_costs(table: Table, device: Device) -> None:
    """An instruction has one cost on an engine."""
    seen: dict[tuple[str, str], int] = {}
    for number, (row, place) in enumerate(zip(device.costs, table.tables("cost"), strict=True)):
        for pair in ((name, engine) for name in row.instructions for engine in row.engines):
            if pair in seen:
                got = words(f"a second cost of {pair[0]} on {pair[1]}; the first is cost[{seen[pair]}]")
                raise place.error("instructions", "one cost of an instruction on an engine", got,
                                  "remove one, or make it one formula with a condition")  # fmt: skip
            seen[pair] = number


def _check_products(table: Table, device: Device) -> None:
    """Figures that follow from others agree with them."""
    if (tiles := device.tile_limits) is not None:
        _agree(
            table,
            "tiles.partitions",
            tiles.partitions,
            device.memory["scratch"].partitions,
            "partitions of scratch",
        )
        accumulator = device.memory.get("accumulator")
        if accumulator is not None and accumulator.bank_bytes is not None:
            value = Figure(accumulator.bank_bytes, "")
            _agree(
                table,
                "tiles.bank_bytes",
                tiles.bank_bytes,
                value,
                "bytes of a bank of the accumulator",
                "size",
            )
    if (dma := device.transfers) is not None:
        product = Figure(dma.engines.value * dma.bandwidth.value, "")
        _agree(table, "dma.core_bandwidth", dma.core_bandwidth, product, "engines x bandwidth", "bandwidth")
        if device.chip is not None:
            count = Figure(dma.engines.value * device.chip.cores.value, "")
            if dma.chip_engines is not None and dma.chip_engines.value > count.value:
                _agree(table, "dma.chip_engines", dma.chip_engines, count, "engines x cores")
    if (sm := device.multiprocessor) is not None:
        if sm.block_shared_bytes.value > sm.shared_bytes.value:
            raise table.error(
                "sm.block_shared_bytes",
                f"at most shared_bytes, {format_size(sm.shared_bytes.value)}",
                words(format_size(sm.block_shared_bytes.value)),
                CONTRADICTION,
            )
        if sm.warps is not None:
            product = Figure(sm.warps.value * sm.warp_lanes.value, "")
            _agree(table, "sm.threads", sm.threads, product, "warps x warp_lanes")


def _agree(
    table: Table,
    key: str,
    found: Figure[Any] | None,
    wanted: Figure[Any] | None,
    what: str,
    reads: str = "count",
) -> None:
    if found is None or wanted is None or abs(found.value - wanted.value) <= NEAR * wanted.value:
        return
    expected, got = (format_quantity(each.value, reads) for each in (wanted, found))
    raise table.error(key, f"{expected}, which is {what}", words(got), CONTRADICTION)

"""`blocklang devices`: list, show, check and begin descriptions of devices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import indent

import click

from blocklang.cli.output import write_file
from blocklang.diagnostics import BlocklangError, UsageError
from blocklang.target import device_names, find_device
from blocklang.target.device import Device
from blocklang.target.device_report import list_figures, source_text, to_dict
from blocklang.target.device_search import SUFFIX, device_text, read_device, shipped_names, user_files
from blocklang.target.units import format_quantity


@click.group(name="devices")
def describe() -> None:
    """Look at the accelerators that are described, and describe one of your own.

    A NAME is one of `blocklang devices list`, or a path that ends in .toml. Your own files are found by name
    in the directories of BLOCKLANG_DEVICE_PATH.

    \b
      blocklang devices list
      blocklang devices show trn2
      blocklang devices new mine --from trn2
      blocklang devices validate mine.toml
    """


@describe.command(name="list")
def list_devices() -> None:
    """Print every device that a name finds, and where its description is."""
    own = user_files()
    rows = [("name", "kind", "cores", "where", "what")]
    for name in device_names():
        where = str(own[name]) if name in own else "shipped" if name in shipped_names() else "detected"
        try:
            device = find_device(name)
        except BlocklangError as error:  # the others are still of use
            rows.append((name, "-", "-", where, error.message))
            continue
        rows.append((name, device.kind, str(device.cores), where, device.title))
    for line in _align(rows):
        click.echo(line)


@describe.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="As JSON, in base units: bytes, hertz, seconds.")
def show(name: str, as_json: bool) -> None:
    """Print every figure of a device with its source, what instructions cost, and published results.

    A figure with a ? was derived or recalled: nobody has read its source again.
    """
    device = find_device(name)
    if as_json:
        click.echo(json.dumps(to_dict(device), indent=2))
    else:
        click.echo("\n".join(_describe(device)))


@describe.command()
@click.argument("file", type=click.Path(path_type=Path))
def validate(file: Path) -> None:
    """Check a device FILE; say what is wrong first, with line, key, what was expected and what to do."""
    device = read_device(file)
    figures = list(list_figures(device))
    doubtful = sum(each.figure.unverified for each in figures)
    click.echo(
        f"{file}: {device.name} is right: kind {device.kind}, {len(figures)} figures, {doubtful} of them "
        f"unverified, {len(device.instructions)} instructions, {len(device.published)} published results"
    )


@describe.command()
@click.argument("name")
@click.option("--from", "origin", default="trn2", show_default=True, help="The device to start from.")
@click.option(
    "-o", "output", type=click.Path(dir_okay=False, path_type=Path), help="The file; by default NAME.toml."
)
def new(name: str, origin: str, output: Path | None) -> None:
    """Write a description called NAME that starts as a copy of another; change its figures and sources.

    What was published of the other device, and how near the model came to it, is left out.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
        raise UsageError(
            f"expected a name of letters, digits, - and _, got {name!r}", help="for instance my_chip"
        )
    path = output or Path(name + SUFFIX)
    if path.exists():
        raise UsageError(f"{path} is there already", help="choose another file with -o")
    text = re.sub(r'^name = ".*"$', f'name = "{name}"', device_text(origin), count=1, flags=re.MULTILINE)
    text = re.sub(
        r"^\[\[published\]\]\n.*?(?=^\[(?!\[published)|\Z)", "", text, flags=re.MULTILINE | re.DOTALL
    )
    write_file(text.rstrip() + "\n", path, "-o")
    click.echo(f"wrote {path}; change its figures, then: blocklang devices validate {path}")


# ---- text ----


def _describe(device: Device) -> Iterator[str]:
    yield f"{device.name}: {device.title} (kind {device.kind})"
    if device.note:
        yield device.note
    for table, figures in groupby(list_figures(device), key=lambda each: each.table):
        yield ""
        yield f"[{table}]{_hardware(device, table)}"
        rows = [
            (each.key, each.text + (" ?" if each.figure.unverified else ""), each.figure.source)
            for each in figures
        ]
        yield from _align(rows, "  ")
    yield from _costs(device)
    yield from _rules(device)
    yield from _published(device)
    if device.sources:
        yield ""
        yield "sources"
        yield from _align(list(device.sources.items()), "  ")


def _hardware(device: Device, table: str) -> str:
    """What the makers call what a table describes."""
    kind, _, name = table.partition(".")
    if kind == "memory":
        return f" {device.memory[name].hardware}"
    return f" {device.engines[name].hardware}" if kind == "engines" and name in device.engines else ""


def _costs(device: Device) -> Iterator[str]:
    if device.costs:
        yield ""
        yield "cycles of an instruction"
    for row in device.costs:
        mark = " ?" if row.unverified else ""
        yield f"  {', '.join(row.instructions)} on {', '.join(row.engines)}"
        yield indent(f"{row.cycles.text}{mark}\n{row.source}", " " * 6)


def _rules(device: Device) -> Iterator[str]:
    if device.rules:
        yield ""
        yield "rules"
    for rule in device.rules:
        mark = " ?" if rule.unverified else ""
        if rule.rule == "place":
            text = f"{', '.join(rule.instructions)}: {', '.join(rule.inputs)} to {', '.join(rule.outputs)}"
        elif rule.rule == "stride":
            text = (
                f"elements {rule.bytes} or more bytes apart in {rule.space}: {rule.factor:g} times the time"
            )
        else:
            text = f"{' and '.join(rule.engines)} take turns at {rule.space} ({rule.when})"
        yield f"  {text}{mark}, {rule.source}"


def _published(device: Device) -> Iterator[str]:
    if device.published:
        yield ""
        yield "published results"
    for each in device.published:
        figure = (
            format_quantity(each.seconds, "time")
            if each.seconds is not None
            else format_quantity(each.rate or 0, "rate")
        )
        mark = " ?" if each.unverified else ""
        yield f"  {each.name}: {figure}{mark}, {source_text(device, each.source)}"
        yield f"      {each.workload}"


def _align(rows: Sequence[tuple[str, ...]], start: str = "") -> Iterator[str]:
    """Rows as columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield (start + "  ".join(cells)).rstrip()

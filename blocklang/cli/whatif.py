"""`blocklang whatif`: the time of a script's kernels if the device were another."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click

from blocklang.cli.profile import NO_LAUNCH
from blocklang.cli.scripts import FILE, device_option, existing_file, run_script, takes_script, write_text
from blocklang.diagnostics import UsageError
from blocklang.emulation.table import format_duration
from blocklang.emulation.whatif import Launched, Point, Vary, changed, combinations, parse_vary, sweep
from blocklang.jit import emulate


@click.command()
@takes_script
@device_option("A device's name, or a .toml file.")
@click.option(
    "--vary",
    "texts",
    required=True,
    multiple=True,
    metavar="KEY=V,V,...",
    help="A key of the description and its values; several: every combination.",
)
@click.option(
    "--json",
    "output",
    type=FILE,
    help="Also write the figures to this file.",
)
@click.option(
    "--plot",
    type=FILE,
    help="Also draw them (.svg, .png; needs matplotlib).",
)
def whatif(
    script: str,
    arguments: tuple[str, ...],
    name: str,
    texts: tuple[str, ...],
    output: Path | None,
    plot: Path | None,
) -> None:
    """Run a Python SCRIPT once and time its kernels on changed devices.

    For each combination of values: the time, what it waits for most, how long each engine works, and the
    kernels that no longer fit, with the line at fault. What the script prints goes to standard error.

    \b
      blocklang whatif examples/matmul.py --device trn2 --vary memory.sbuf.bytes=1MiB,4MiB,28MiB
      blocklang whatif examples/softmax.py --device trn2 --vary dma.engines=8,16 --vary dma.start=1us
    """
    vary = [parse_vary(text) for text in texts]
    path = existing_file(script)
    for row in combinations(vary):  # wrong keys and values before the script runs
        changed(name, dict(zip((v.key for v in vary), row, strict=True)))
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter compiles nothing
    with emulate(name, only_runs=True) as found, redirect_stdout(sys.stderr):
        run_script(path, arguments)
    launches = [
        Launched(each.kernel, each.run, each.times) for each in found.launches if each.run is not None
    ]
    if not launches:
        raise UsageError(f"{path.name} launched no kernel", help=NO_LAUNCH)
    points = list(sweep(name, vary, launches))
    click.echo(format_points(vary, points), nl=False)
    if output is not None:
        report = {"device": name, "script": path.name, "points": [point.to_dict() for point in points]}
        write_text(output, json.dumps(report, indent=2) + "\n", "--json")
    if plot is not None:
        draw(vary, points, plot)


def format_points(vary: Sequence[Vary], points: Sequence[Point]) -> str:
    """A row for each point, then what does not fit."""
    fastest = min((p.seconds for p in points if p.seconds is not None), default=1.0) or 1.0
    rows = [(*(v.key for v in vary), "time", "", "waits for", "active")]
    for point in points:
        time = "does not fit" if point.seconds is None else format_duration(point.seconds)
        bar = "" if point.seconds is None else "#" * max(1, min(40, round(10 * point.seconds / fastest)))
        active = ", ".join(f"{n} {100 * share:.0f}%" for n, share in point.active.items() if share >= 0.005)
        rows.append((*point.changes.values(), time, bar, point.bottleneck, active))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{t:<{w}}" for t, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    said: set[str] = set()
    for point in points:
        for misfit in point.misfits:
            if misfit.message not in said:
                said.add(misfit.message)
                lines.append("")
                lines.append(f"{misfit.place}: {misfit.message}")
    return "\n".join(lines) + "\n"


def draw(vary: Sequence[Vary], points: Sequence[Point], path: Path) -> None:
    """Time over the values of the last key, a line for each combination of the others.

    Raises:
        UsageError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is not installed", help="pip install 'blocklang[bench]'"
        ) from None
    mpl.use("Agg")
    from matplotlib import pyplot

    *others, last = vary
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    lines: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        lines.setdefault(tuple(point.changes[v.key] for v in others), []).append(point)
    places = {value: number for number, value in enumerate(last.values)}
    for names, own in lines.items():
        fitting = [p for p in own if p.seconds is not None]
        label = ", ".join(f"{v.key}={n}" for v, n in zip(others, names, strict=True))
        axes.plot(
            [places[p.changes[last.key]] for p in fitting],
            [1e6 * (p.seconds or 0.0) for p in fitting],
            marker="o",
            label=label,
        )
    for point in points:
        if point.misfits:
            axes.axvspan(
                places[point.changes[last.key]] - 0.4, places[point.changes[last.key]] + 0.4, color="0.9"
            )
    axes.set_xticks(range(len(last.values)), last.values)
    axes.set_xlim(-0.5, len(last.values) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{last.key} (grey: a kernel does not fit)")
    axes.set_ylabel("time (us)")
    if others:
        axes.legend()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {error}", help="choose another file for --plot") from error
    finally:
        pyplot.close(figure)

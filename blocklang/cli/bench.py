"""`blocklang bench`: blocklang beside its peers on this machine.

The workloads, the peers and the measuring are the package `benchmarks` of the source tree: they need
compilers and libraries that users of kernels do not have, so a wheel does not carry them. This module is the
command line alone.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

import blocklang
from blocklang.cli.output import write_file
from blocklang.diagnostics import UsageError


def _find_suite() -> Any:
    """The package `benchmarks` of the tree that this module lies in. Raises UsageError if it has none."""
    root = Path(blocklang.__file__).resolve().parents[1]
    if not (root / "benchmarks" / "suite.py").is_file():
        raise UsageError(
            f"this installation has no benchmarks: there is no directory benchmarks in {root}",
            help="they are part of the source tree: in a checkout, pip install -e '.[bench]', then "
            "`blocklang bench` or `python -m benchmarks`",
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module("benchmarks.suite")


def _numbers(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"expected numbers with commas between them, such as 1,2, got {text!r}")
    return tuple(dict.fromkeys(numbers))


def _names(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--list", "is_list", is_flag=True, help="List workloads and peers, and measure nothing.")
@click.option("--threads", default="1,2", show_default=True, callback=_numbers, help="Numbers of threads.")
@click.option(
    "--peers", default="", callback=_names, metavar="NAMES", help="Only these peers, such as numpy,c."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=4.0,
    show_default=True,
    help="How long to sample each workload, all peers together.",
)
@click.option("--small", is_flag=True, help="Tiny sizes: whether everything runs, not how fast.")
@click.option("--json", "json_file", type=_FILE, help="Write all samples to this file, row by row.")
@click.option("--append", is_flag=True, help="Keep what else the file of --json holds already.")
@click.option("--markdown", type=_FILE, help="Write the tables to this file instead of standard output.")
@click.option("--plot", type=_FILE, help="Draw the ratios into this file: .png, .svg or .pdf.")
def bench(
    workloads: tuple[str, ...],
    is_list: bool,
    threads: tuple[int, ...],
    peers: tuple[str, ...],
    seconds: float,
    small: bool,
    json_file: Path | None,
    append: bool,
    markdown: Path | None,
    plot: Path | None,
) -> None:
    """Measure blocklang beside NumPy, PyTorch, Numba, JAX and C on this machine.

    Every peer has a process of its own with a fixed number of threads, is checked against a float64 reference
    and then measured in turns with the others. A WORKLOAD is a name of --list, the part before its hyphen, a
    family or a pattern; without one, everything is measured. Needs a source checkout; a peer that is not
    installed is listed as absent. Exits with status 1 if a result was wrong.

    \b
      blocklang bench softmax
      blocklang bench rows 'matmul-*' --peers numpy,c --threads 1 --seconds 10
      blocklang bench --json bench.json --markdown bench.md --plot bench.svg
      blocklang bench attention --json bench.json --append
    """
    suite = _find_suite()
    if is_list:
        click.echo(suite.list_workloads(), nl=False)
        return
    if append and json_file is None:
        raise UsageError("--append needs a file to append to", help="name it: --json FILE --append")
    earlier = json_file if append and json_file is not None and json_file.exists() else None
    request = suite.Request(workloads, peers, threads, seconds, small, earlier)

    def keep(report: Any) -> None:
        if json_file is not None:
            write_file(report.to_json(), json_file, "--json")

    report = suite.run(request, keep)
    keep(report)
    text = importlib.import_module("benchmarks.markdown").to_markdown(report)
    if markdown is not None:
        write_file(text, markdown, "--markdown")
    else:
        click.echo(text, nl=False)
    if plot is not None:
        importlib.import_module("benchmarks.plot").write_plot(report, plot)
    if report.failures():
        raise click.exceptions.Exit(1)

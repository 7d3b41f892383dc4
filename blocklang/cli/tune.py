"""`blocklang tune`: run a script with every autotuned kernel measured anew, and show what was found."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from blocklang.cli.scripts import existing_file, run_script, write_text
from blocklang.diagnostics import UsageError
from blocklang.tune.report import Report, format_report, tuning_forced


@click.command()
@click.argument("script")
@click.argument("arguments", nargs=-1)
@click.option(
    "--json",
    "figures",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the figures to this file.",
)
def tune(script: str, arguments: tuple[str, ...], figures: Path | None) -> None:
    """Run a Python SCRIPT, measure its autotuned kernels anew, and print a table for each kernel and key.

    What was kept on disk is not looked at; what is found replaces it, and later runs of the script start with
    it. The line that begins with * is the config that launches use, and ratios are over its time. What the
    script prints goes to standard error.

    \b
      blocklang tune examples/autotune.py
      blocklang tune examples/autotune.py --json found.json
    """
    path = existing_file(script)
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter's times say nothing
    with tuning_forced() as reports, redirect_stdout(sys.stderr):
        run_script(path, arguments)
    if not reports:
        raise UsageError(
            f"{path.name} launched no kernel that has configs to choose from",
            help="put `@bl.autotune(configs, key=[...])` above `@bl.jit`, and launch the kernel",
        )
    click.echo("\n".join(map(format_report, reports)), nl=False)
    if figures is not None:
        write_text(figures, json.dumps([_as_data(report) for report in reports], indent=1) + "\n", "--json")


def _as_data(report: Report) -> dict[str, object]:
    rows = [
        {
            "config": {name: str(value) for name, value in row.config.all_kwargs().items()},
            "milliseconds": list(row.milliseconds),
            "dropped": row.dropped,
            "best": row.config is report.best,
        }
        for row in report.rows
    ]
    return {
        "kernel": report.kernel,
        "key": [str(part) for part in report.key],
        "seconds": report.seconds,
        "configs": rows,
    }

"""`blocklang check`: everything that is wrong with a script's kernels, in one run."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import click

from blocklang.cli.devices import mapped_devices
from blocklang.cli.scripts import FILE, device_option, existing_file, run_script, takes_script, write_text
from blocklang.diagnostics import UsageError
from blocklang.jit import check_launches
from blocklang.runtime.findings import Finding, Findings
from blocklang.runtime.watching import watch_empty
from blocklang.target import find_device

MOST_SHOWN = 50


@click.command()
@takes_script
@device_option("Kernels must fit it: {names}, or a .toml file. Default: none.", "none")
@click.option("--nan/--no-nan", default=True, help="Look for operations that make a NaN of numbers.")
@click.option(
    "--watch-empty",
    "watches",
    is_flag=True,
    help="Arrays of numpy.empty and torch.empty count as unwritten until they are written.",
)
@click.option("--device-map", metavar="cuda=cpu", help="Let PyTorch's device cuda mean the CPU, as in `run`.")
@click.option(
    "--json",
    "output",
    type=FILE,
    help="Also write the findings to this file.",
)
def check(
    script: str,
    arguments: tuple[str, ...],
    name: str,
    nan: bool,
    watches: bool,
    device_map: str | None,
    output: Path | None,
) -> None:
    """Run a Python SCRIPT and report everything that is wrong with its kernels.

    Every launch runs natively, on one thread, and is checked for accesses outside of arrays, int32 overflow
    in addresses, races between programs, reads of unwritten elements, misaligned accesses, hints and
    assertions that do not hold, and NaN made of numbers. The script goes on after a finding. What it prints
    goes to standard error. Exits with status 1 if there are findings.

    \b
      blocklang check examples/softmax.py
      blocklang check examples/matmul.py 512 512 512 --device trn2 --json findings.json
    """
    device = None if name == "none" else find_device(name)
    path = existing_file(script)
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter has checks of its own
    with ExitStack() as stack:
        found = stack.enter_context(check_launches(device, nan=nan))
        stack.callback(_report, found, output)  # also when the script fails
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(mapped_devices(device_map))
        if watches:
            if find_spec("torch") is not None:
                import blocklang.torch.device  # noqa: F401 - loads PyTorch, whose functions are seen from now on
            stack.enter_context(watch_empty())
        run_script(path, arguments)
    if not found.launches:
        raise UsageError(f"{path.name} launched no kernel", help="check a script that launches one")
    if found.items:
        raise SystemExit(1)


def _report(found: Findings, output: Path | None) -> None:
    if found.launches:
        click.echo(format_findings(found), nl=False)
    if output is not None:
        write_text(output, json.dumps(found.to_dict(), indent=2) + "\n", "--json")


def format_findings(found: Findings) -> str:
    """All findings with their lines, or one line that says that there is none."""
    where = f"{_count(found.launches, 'launch', 'launches')} of {_count(len(found.kernels), 'kernel')}"
    if not found.items:
        return f"no findings in {where}\n"
    shown = found.items[:MOST_SHOWN]
    parts = [_text(finding) for finding in shown]
    more = len(found.items) - len(shown)
    if more:
        parts.append(f"and {_count(more, 'more finding')}: --json FILE has all\n")
    return "\n".join([*parts, f"{_count(len(found.items), 'finding')} in {where}\n"])


def _text(finding: Finding) -> str:
    times = f", seen {finding.count} times" if finding.count > 1 else ""
    return f"{finding.error.render()}\nfound in launch {finding.launch}, kernel {finding.kernel}{times}\n"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"

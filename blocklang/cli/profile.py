"""`blocklang profile`: what a script's kernels move on a device that is not here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from blocklang.cli.scripts import existing_file, run_file
from blocklang.diagnostics import UsageError
from blocklang.emulation.profile import Profile
from blocklang.emulation.table import format_profile
from blocklang.jit import emulate
from blocklang.target import device_names, find_device
from blocklang.target.device_search import HOST, shipped_names


def _complete_device(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in device_names() if name.startswith(start)]


@click.command()
@click.argument("script")
@click.argument("arguments", nargs=-1)
@click.option(
    "--device",
    "name",
    required=True,
    metavar="NAME",
    shell_complete=_complete_device,
    help=f"One of {', '.join((*shipped_names(), HOST))}, or a description of your own: a .toml file.",
)
@click.option(
    "--json",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the figures to this file.",
)
def profile(script: str, arguments: tuple[str, ...], name: str, output: Path | None) -> None:
    """Run a Python SCRIPT and count what its kernels move on a device that is not here.

    Every launch runs natively, with its right results, and counts the bytes that go to and from each memory
    space, and the lines they belong to. A kernel whose buffers do not fit the device is refused, with what
    fills the space. There is no time in it yet. What the script prints goes to standard error.

    \b
      blocklang profile examples/softmax.py --device trn2
      blocklang profile examples/matmul.py 512 512 512 --device trn2 --json matmul.json
      blocklang profile examples/blur.py --device my_chip.toml
    """
    device = find_device(name)
    path = existing_file(script)
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter compiles nothing
    with emulate(device) as found, redirect_stdout(sys.stderr):
        _run(path, arguments)
    if not found.launches:
        raise UsageError(f"{path.name} launched no kernel", help="profile a script that launches one")
    click.echo(format_profile(found), nl=False)
    if output is not None:
        _write_json(found, output)


def _run(path: Path, arguments: Sequence[str]) -> None:
    """Run the script; one that leaves with status 0 has done its work."""
    try:
        run_file(path, arguments)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            raise


def _write_json(found: Profile, output: Path) -> None:
    text = json.dumps(found.to_dict(), indent=2) + "\n"
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        help = "choose another file for --json"
        raise UsageError(f"cannot write {output}: {error.strerror}", help=help) from error

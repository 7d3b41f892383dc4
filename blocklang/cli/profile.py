"""`blocklang profile`: what a script's kernels move on a device that is not here, and how long they take."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from blocklang.cli.scripts import FILE, device_option, existing_file, run_script, takes_script, write_text
from blocklang.diagnostics import UsageError
from blocklang.emulation.page import format_page
from blocklang.emulation.saving import format_json
from blocklang.emulation.table import format_profile
from blocklang.emulation.trace import format_trace
from blocklang.jit import emulate
from blocklang.target import find_device

NO_LAUNCH = "profile a script that launches one; what runs inside of its own `bl.emulate` is reported there"


@click.command()
@takes_script
@device_option("One of {names}, or a description of your own: a .toml file.")
@click.option("--json", "figures", type=FILE, help="Also write the figures to this file.")
@click.option("--html", "page", type=FILE, help="Also write a page: timeline, roofline, source line by line.")
@click.option("--trace", type=FILE, help="Also write a timeline that Perfetto and chrome://tracing open.")
def profile(
    script: str,
    arguments: tuple[str, ...],
    name: str,
    figures: Path | None,
    page: Path | None,
    trace: Path | None,
) -> None:
    """Run a Python SCRIPT and tell what its kernels do on a device that is not here, and how long they take.

    Every launch runs natively, with its right results, and counts the bytes that go to and from each memory
    space, and the lines they belong to. From that a model of the device says when its engines work, what they
    wait for, and at which line. A kernel whose buffers do not fit the device is refused, with what fills the
    space. What the script prints goes to standard error.

    \b
      blocklang profile examples/softmax.py --device trn2
      blocklang profile examples/matmul.py 512 512 512 --device h100 --html matmul.html
      blocklang profile examples/blur.py --device my_chip.toml --json blur.json
    """
    device = find_device(name)
    path = existing_file(script)
    os.environ.pop("BLOCKLANG_INTERPRET", None)  # the interpreter compiles nothing
    with emulate(device) as found, redirect_stdout(sys.stderr):
        run_script(path, arguments)
    if not found.launches:
        raise UsageError(f"{path.name} launched no kernel", help=NO_LAUNCH)
    click.echo(format_profile(found), nl=False)
    files = (
        ("--json", figures, format_json),
        ("--html", page, format_page),
        ("--trace", trace, format_trace),
    )
    for option, file, form in files:
        if file is not None:
            write_text(file, form(found), option)

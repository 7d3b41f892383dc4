"""The `blocklang` command: look at a kernel at every stage, run scripts, examine the machine.

    group       errors become messages and exit statuses
    stages      `ir`, `llvm`, `asm`
    build       libraries, headers and wheels
    explain     how each line of a kernel runs, and why
    kernels     which kernel is meant, and for which types and constants
    signature   `--sig` and `-D`
    scripts     running a user's file
    devices     `--device-map`
    device_files  `devices`: descriptions of accelerators
    measure     the rates of this machine, for `doctor --measure`
    bench       `benchmarks/` of the source tree
    ir_text     `.blir` files
    check       everything that is wrong with a script's kernels
    profile     what a script's kernels move on a device, and how long they take there
    tune        autotuned kernels of a script, measured anew
    whatif      the same if the device were another
    cache       what is kept on disk
    doctor      what was found on this machine
    output      files, pipes and coloured terminals
    highlight   colours

Nothing below imports this room.
"""

from __future__ import annotations

import click

from blocklang.cli.bench import bench
from blocklang.cli.build import build
from blocklang.cli.cache import cache
from blocklang.cli.check import check
from blocklang.cli.device_files import describe
from blocklang.cli.devices import mapped_devices
from blocklang.cli.doctor import examine, version_of
from blocklang.cli.explain import explain
from blocklang.cli.group import ErrorGroup
from blocklang.cli.measure import measure_host
from blocklang.cli.profile import profile
from blocklang.cli.scripts import existing_file, run_file
from blocklang.cli.stages import COMMANDS
from blocklang.cli.tune import tune
from blocklang.cli.whatif import whatif

EPILOG = """\b
A first look:
  blocklang ir examples/softmax.py --from-run
  blocklang asm examples/vector_add.py --from-run
  blocklang ir kernels.py:add --sig '*fp32,*fp32,*fp32,i32' -D BLOCK=1024

\b
Completion in your shell (put the line into the file that it reads at start):
  bash: eval "$(_BLOCKLANG_COMPLETE=bash_source blocklang)"
  zsh:  eval "$(_BLOCKLANG_COMPLETE=zsh_source blocklang)"
  fish: _BLOCKLANG_COMPLETE=fish_source blocklang | source
"""


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"blocklang {version_of('blocklang')}")
        context.exit()


@click.group(cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version.",
)
def main() -> None:
    """Block kernels in Python, compiled for this CPU: look at every stage of them, and run them."""


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--device-map",
    metavar="cuda=cpu",
    help="Let PyTorch's device cuda mean the CPU, with everything of torch.cuda.",
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(script: str, arguments: tuple[str, ...], device_map: str | None) -> None:
    """Run a Python SCRIPT that launches kernels.

    What follows the script's name is given to it. `import triton` finds blocklang, in the script and in what
    it imports. A mistake in a kernel or a launch is shown with its line, not with the frames of this command.

    \b
      blocklang run examples/blur.py
      blocklang run examples/matmul.py 1000 700 333
      blocklang run --device-map cuda=cpu triton_script.py
    """
    path = existing_file(script)
    with mapped_devices(device_map):
        run_file(path, arguments)


@main.command()
@click.option(
    "--measure",
    is_flag=True,
    help="Measure this machine (some seconds), and write the rates as the device host.",
)
def doctor(measure: bool) -> None:
    """Say what blocklang found on this machine, test it, and suggest what to change.

    Exits with status 1 if a kernel cannot be compiled and run. With --measure, it measures instead the rates
    of the processor, the caches and the memory: `blocklang devices show host` prints what came of it.
    """
    if measure:
        measure_host()
    else:
        examine()


for command in (*COMMANDS, explain, check, build, profile, whatif, describe, tune, bench, cache):
    main.add_command(command)

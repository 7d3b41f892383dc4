"""`blocklang explain`: what became of a kernel's lines, and why."""

from __future__ import annotations

import json

import click

from blocklang.cli.stages import Request, takes_kernel
from blocklang.diagnostics import UsageError


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@takes_kernel
def explain(request: Request, as_json: bool) -> None:
    """Say for each line of a kernel how its accesses run on this CPU, and why they are not better.

    Per line: the class of each access (consecutive, broadcast, strided, gather, ...), its mask, what the fast
    version takes for granted and what happens otherwise, loops and their lanes, matrix products and their
    tiles. Then what is kept in memory, and why. BLOCKLANG_CPU=x86-64-v3 asks for another level.

    \b
      blocklang explain examples/softmax.py --from-run
      blocklang explain examples/matmul.py --from-run --json -o matmul.json
      blocklang explain kernels.py:add --sig '*fp32,*fp32,*fp32,i32' -D BLOCK=1024
    """
    from blocklang.explain import explain_kernel, format_report
    from blocklang.target import current_target

    kernel = request.find_kernel()
    if kernel.level != "block":
        raise UsageError(
            f"expected a kernel of level block, and the file's is of level {kernel.level}",
            help="start from Block IR: `blocklang ir FILE --after frontend -o kernel.blir`",
        )
    report = explain_kernel(kernel, current_target())
    text = json.dumps(report.to_dict(), indent=2) + "\n" if as_json else format_report(report)
    request.write(text, "report")

"""Block IR to placed Tile IR, as far as `narrow_loops`: the schedule, and what becomes of masks and accesses.

Golden cases; the CPU level is fixed, so the chosen widths do not depend on the machine that runs the tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blocklang.ir.core import Kernel
from blocklang.passes.pipeline import run_pipeline
from blocklang.target import target_for
from tests.passes.cases import GOLDEN, read_kernel

FILES = sorted(path.relative_to(GOLDEN).as_posix() for path in (GOLDEN / "lowering").glob("*.ir"))


@pytest.mark.parametrize("case", FILES)
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    before = (GOLDEN / case).read_text("utf-8").partition("\n// schedule")[0].rstrip() + "\n"
    narrowed: list[str] = []

    def observe(name: str, kernel: Kernel) -> None:
        if name == "narrow_loops":
            narrowed.append(str(kernel))

    run = run_pipeline(read_kernel(before), target_for("x86-64-v3"), verify_each=True, observer=observe)
    schedule = "\n".join(f"// {line}" for line in str(run.schedule).splitlines())
    golden(case, f"{before}\n{schedule}\n{narrowed[0]}")

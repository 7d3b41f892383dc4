"""Checks of whole launches: golden cases. What they find is tested in tests/checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blocklang.passes.check_alignment import check_alignment
from blocklang.passes.check_races import check_races
from blocklang.passes.check_unwritten import check_unwritten
from blocklang.passes.continue_after_faults import continue_after_faults
from tests.passes.cases import GOLDEN, Pass, check_case

PASSES: dict[str, Pass] = {
    run.__name__: run for run in (check_alignment, check_races, check_unwritten, continue_after_faults)
}
CASES = [
    path.relative_to(GOLDEN).as_posix() for name in PASSES for path in sorted((GOLDEN / name).glob("*.ir"))
]


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, PASSES[case.split("/")[0]])

"""Reads before the loop that repeats them: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.hoist_reads import hoist_reads
from tests.passes.cases import cases_of, check_case


@cases_of("hoist_reads")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, hoist_reads)

"""Rows that the next round of a loop reads: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.prefetch_rounds import prefetch_rounds
from tests.passes.cases import cases_of, check_case


@cases_of("prefetch_rounds")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, prefetch_rounds)

"""Loops cut where a choice changes: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.cut_loops import cut_loops
from tests.passes.cases import cases_of, check_case


@cases_of("cut_loops")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, cut_loops)

"""Checks of accesses: golden cases. What they find is tested in tests/behaviour/test_debug.py."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.insert_checks import insert_checks
from tests.passes.cases import cases_of, check_case


@cases_of("insert_checks")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, insert_checks)

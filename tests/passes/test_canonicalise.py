"""Canonicalisation: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.canonicalise import canonicalise
from tests.passes.cases import cases_of, check_case


@cases_of("canonicalise")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, canonicalise)

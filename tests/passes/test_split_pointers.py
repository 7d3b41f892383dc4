"""Splitting of pointers: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.split_pointers import split_pointers
from tests.passes.cases import cases_of, check_case


@cases_of("split_pointers")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, split_pointers)

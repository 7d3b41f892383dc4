"""Loops that end where their masks do: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.narrow_loops import narrow_loops
from tests.passes.cases import cases_of, check_case


@cases_of("narrow_loops")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, narrow_loops)

"""Loop invariants: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.hoist_loop_invariants import hoist_loop_invariants
from tests.passes.cases import cases_of, check_case


@cases_of("hoist_loop_invariants")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, hoist_loop_invariants)

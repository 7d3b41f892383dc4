"""Dead code elimination: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.eliminate_dead_code import eliminate_dead_code
from tests.passes.cases import cases_of, check_case


@cases_of("eliminate_dead_code")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, eliminate_dead_code)

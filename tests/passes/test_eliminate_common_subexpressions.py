"""Common subexpressions: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from tests.passes.cases import cases_of, check_case


@cases_of("eliminate_common_subexpressions")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, eliminate_common_subexpressions)

"""Strides that may be 1: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.version_strides import version_strides
from tests.passes.cases import cases_of, check_case


@cases_of("version_strides")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, version_strides)

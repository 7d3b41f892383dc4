"""Loops that read the same: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.fuse_loops import fuse_loops
from tests.passes.cases import cases_of, check_case


@cases_of("fuse_loops")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, fuse_loops)

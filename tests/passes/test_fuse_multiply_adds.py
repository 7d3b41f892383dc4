"""Fusion of products and sums: golden cases. What the results are is tested in
tests/numerics/test_fp_fusion.py."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.fuse_multiply_adds import fuse_multiply_adds
from tests.passes.cases import cases_of, check_case


@cases_of("fuse_multiply_adds")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, fuse_multiply_adds)

"""Masks that all lanes share: golden cases."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.passes.unswitch_masks import unswitch_masks
from tests.passes.cases import cases_of, check_case


@cases_of("unswitch_masks")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, unswitch_masks)

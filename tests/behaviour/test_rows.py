"""No row of behaviour is without a test."""

from __future__ import annotations

import inspect

import pytest

from tests.behaviour import test_front_end, test_memory, test_numbers
from tests.behaviour.rows import CARRIED, ROWS

MODULES = {"Numbers": test_numbers, "Memory": test_memory, "The front end": test_front_end}


@pytest.mark.parametrize(("section", "title"), [(s, title) for s, titles in ROWS.items() for title in titles])
def test_every_row_has_a_test(section: str, title: str) -> None:
    names = CARRIED[section, title]
    assert names, f"no test carries the row `{title}` of {section}"
    for name in names:
        test = getattr(MODULES[section], name)
        assert inspect.getdoc(test), f"{name} does not say what is right"


@pytest.mark.parametrize("section", ROWS)
def test_every_test_carries_a_row(section: str) -> None:
    carried = {name for (s, _), names in CARRIED.items() if s == section for name in names}
    tests = {name for name in vars(MODULES[section]) if name.startswith("test_")}
    assert tests == carried

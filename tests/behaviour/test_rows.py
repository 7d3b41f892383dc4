"""No row of behaviour is without a test."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tests.behaviour import test_debug, test_front_end, test_memory, test_numbers
from tests.behaviour.rows import CARRIED, ROWS

# Where tests carry rows, and of which sections; tests elsewhere may carry one, too.
MODULES = {
    test_numbers: {"Numbers"},
    test_memory: {"Memory"},
    test_front_end: {"The front end"},
    test_debug: {"Numbers", "Memory"},
}


@pytest.mark.parametrize(("section", "title"), [(s, title) for s, titles in ROWS.items() for title in titles])
def test_every_row_has_a_test(section: str, title: str) -> None:
    tests = CARRIED[section, title]
    assert tests, f"no test carries the row `{title}` of {section}"
    for test in tests:
        assert inspect.getdoc(test), f"{test} does not say what is right"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_test_carries_a_row(module: ModuleType) -> None:
    carried = [
        (s, t.__name__) for (s, _), ts in CARRIED.items() for t in ts if t.__module__ == module.__name__
    ]
    assert {name for _, name in carried} == {name for name in vars(module) if name.startswith("test_")}
    assert {section for section, _ in carried} == MODULES[module]

"""Every row of the conformance page: its probe runs in both modes, and the page says what it showed."""

from __future__ import annotations

import pytest

from docs.conformance.__main__ import TARGET
from docs.conformance.model import Outcome, Row, State
from docs.conformance.page import render, states_now, states_of, summary
from docs.conformance.rows import all_rows
from docs.conformance.running import outcome_of

ROWS = all_rows()
SAID = states_of(TARGET.read_text("utf-8")) if TARGET.exists() else {}


def test_rows_have_names_of_their_own() -> None:
    assert len({(row.group, row.name) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.group}: {row.name}")
def test_row_is_what_the_page_says(row: Row) -> None:
    outcome = outcome_of(row)
    assert outcome.state is not State.FAILED, outcome.reason
    assert states_now([outcome])[row.group, row.name] == SAID.get((row.group, row.name))


def test_page_lists_no_other_row() -> None:
    assert set(SAID) == {(row.group, row.name) for row in ROWS}


def test_a_page_can_be_read_back() -> None:
    outcomes = [
        Outcome(ROWS[0], State.NATIVE),
        Outcome(ROWS[1], State.SLOWER),
        Outcome(ROWS[2], State.REFUSED, "`a|b` is not built"),
    ]
    assert states_of(render(outcomes)) == states_now(outcomes)
    assert summary(outcomes) == "3 rows: 1 native, 1 slower than NumPy, 1 refused. 33.3 % are native."


def test_nearly_nothing_is_refused() -> None:
    """Two of 100 rows at most. Which rows NumPy computes faster depends on the machine, and is no test."""
    assert sum(state != State.NATIVE.value for state in SAID.values()) <= 0.02 * len(ROWS)
    assert not any(state.startswith(State.FAILED.value) for state in SAID.values())

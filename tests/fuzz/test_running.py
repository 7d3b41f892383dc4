"""The runner of many seeds: crashes and endless loops are reported with their seeds, and end no run."""

from __future__ import annotations

import os
import signal
import time

from tests.fuzz.__main__ import Examination, make
from tests.fuzz.execution import Check, Failure
from tests.fuzz.running import DIED, IsolatedCheck, Outcome, Runner


def _fatal(seed: int) -> Outcome:
    if seed == 107:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 131:
        while True:
            pass
    return Outcome(seed, checked=seed % 2 == 0)


def test_a_seed_that_ends_its_process_is_reported_and_the_others_run() -> None:
    outcomes = {o.seed: o for o in Runner(_fatal, jobs=2, seed_seconds=1).run(range(100, 160))}
    assert sorted(outcomes) == list(range(100, 160))
    assert outcomes[107].failure == Failure(DIED, "died of SIGSEGV")
    assert outcomes[131].failure == Failure(DIED, "ran too long")
    assert [o.seed for o in outcomes.values() if o.failure] in ([107, 131], [131, 107])
    assert all(outcomes[s].checked == (s % 2 == 0) for s in range(100, 160) if s not in (107, 131))


def test_no_seed_begins_after_the_deadline() -> None:
    assert list(Runner(_fatal, deadline=time.monotonic() - 1).run(range(60))) == []


def test_an_isolated_check_says_how_its_process_died() -> None:
    class Fatal(Check):
        def __call__(self, case: object) -> Failure | None:
            os.abort()

    case = make(0)
    assert IsolatedCheck(Fatal())(case) == Failure(DIED, "died of SIGABRT")
    assert IsolatedCheck(Check())(case) is None


def test_an_error_of_the_generator_is_an_outcome() -> None:
    outcome = Examination()("no seed")  # type: ignore[arg-type]
    assert outcome.failure is not None
    assert "TypeError" in outcome.failure.reason

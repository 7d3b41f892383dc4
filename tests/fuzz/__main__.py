"""`python -m tests.fuzz`: random kernels, every form against every other.

    python -m tests.fuzz --count 200 --seed 0          # cases 0 .. 199
    python -m tests.fuzz --count 100000 --jobs 2       # in two processes at once
    python -m tests.fuzz --count 1 --seed 17 --every-pass

A failure is made small and printed as a test for `test_regressions.py`. The exit status is then 1. A kernel
that kills the process that checks it is a failure like any other: its seed is printed, and the run goes on.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass

from blocklang.passes.schedule import choose_schedule
from tests.fuzz.cases import Case
from tests.fuzz.execution import Check, Failure, InvalidCase, host_supports
from tests.fuzz.generator import make_case, make_source_case
from tests.fuzz.reporting import as_test
from tests.fuzz.running import DIED, IsolatedCheck, Outcome, Runner
from tests.fuzz.schedules import PerturbedSchedule
from tests.fuzz.shrinking import Shrinker

CPUS = ("host", "host", "x86-64-v3", "x86-64-v3", "x86-64-v2", "x86-64-v4", "x86-64")
GENERATOR = "generator"  # the stage of a case that could not be made
_DEBUG = 0.2  # the share of cases that are checked in debug mode, too
_EMULATED = 0.1  # and with the counters of an emulated device
_THOROUGH = 0.25  # the share of cases whose forms in between are checked even if machine code agrees


def check_for(
    seed: int,
    *,
    every_pass: bool = False,
    all_forms: bool = False,
    isolate: bool = True,
    only_emulated: bool = False,
) -> Check:
    """How case `seed` is checked: for which CPU, whether with a schedule of its own and in debug mode, and
    how thoroughly."""
    rng = random.Random(f"check {seed}")
    cpu = rng.choice([c for c in CPUS if host_supports(c)])
    perturbed = rng.random() < 0.4
    forms = every_pass or all_forms or random.Random(f"forms {seed}").random() < _THOROUGH
    schedule = PerturbedSchedule(seed) if perturbed else choose_schedule
    debug = random.Random(f"debug {seed}").random() < _DEBUG
    emulated = only_emulated or random.Random(f"emulated {seed}").random() < _EMULATED
    return Check(
        cpu,
        schedule,
        every_pass=every_pass,
        isolate=isolate,
        forms=forms,
        debug=debug,
        emulated=emulated,
        plain=not only_emulated,
    )


def make(seed: int) -> Case:
    """Case `seed`: every fourth from Python source, the others of Block IR.

    Raises:
        InvalidCase: the kernel leaves its arrays.
    """
    return (make_source_case if seed % 4 == 3 else make_case)(random.Random(seed))


def run_seed(seed: int, check: Check) -> tuple[Case, Failure | None]:
    """Make and check one case.

    Raises:
        InvalidCase: the kernel leaves its arrays.
    """
    case = make(seed)
    return case, check(case)


@dataclass(frozen=True)
class Examination:
    """What the command does with a seed: make the case, check it, make a failure small.

    Attributes:
        every_pass: interpret the kernel after every pass.
        shrink_seconds: to make one failure small; 0 leaves it as it was found.
        only_emulated: run nothing but machine code with the counters of an emulated device.
    """

    every_pass: bool = False
    shrink_seconds: float = 120.0
    only_emulated: bool = False

    def __call__(self, seed: int) -> Outcome:
        check = check_for(seed, every_pass=self.every_pass, only_emulated=self.only_emulated)
        try:
            case, failure = run_seed(seed, check)
        except InvalidCase:
            return Outcome(seed, checked=False)
        except Exception:  # noqa: BLE001  (whatever it raises is what the fuzzer looks for)
            return Outcome(seed, failure=Failure(GENERATOR, traceback.format_exc(limit=-8)))
        return Outcome(seed, failure=failure, test=self.shrunk(seed, case, failure) if failure else "")

    def shrunk(self, seed: int, case: Case, failure: Failure) -> str:
        """A failing case as a test, made small if there is time for it."""
        check = check_for(seed, every_pass=self.every_pass, only_emulated=self.only_emulated)
        isolated = IsolatedCheck(check)
        shrinker = Shrinker(case, failure, isolated if failure.stage == DIED else check, self.shrink_seconds)
        if self.shrink_seconds:
            shrinker.run()
        return as_test(shrinker.case, shrinker.failure, check, seed)

    def after_death(self, outcome: Outcome) -> Outcome:
        """The outcome of a seed whose process died, with a test."""
        assert outcome.failure is not None
        try:
            case = make(outcome.seed)
        except InvalidCase:
            return outcome
        return Outcome(
            outcome.seed, failure=outcome.failure, test=self.shrunk(outcome.seed, case, outcome.failure)
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Compare all forms of random kernels."
    )
    parser.add_argument("--count", type=int, default=100, help="how many kernels (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes check at once (default 1)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--every-pass", action="store_true", help="interpret the kernel after every pass")
    parser.add_argument(
        "--emulated", action="store_true", help="only machine code with an emulated device's counters"
    )
    parser.add_argument("--no-shrink", action="store_true", help="report failures as they were found")
    parser.add_argument(
        "--shrink-seconds", type=float, default=120.0, help="time to shrink one failure (default 120)"
    )
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    started = time.monotonic()
    shrink_seconds = 0.0 if options.no_shrink else options.shrink_seconds
    examine = Examination(options.every_pass, shrink_seconds, options.emulated)
    runner = Runner(
        examine,
        max(options.jobs, 1),
        seed_seconds=300 + int(examine.shrink_seconds),
        deadline=started + options.seconds,
    )
    outcomes: Counter[str] = Counter()
    for outcome in runner.run(range(options.seed, options.seed + options.count)):
        if not outcome.checked:
            outcomes["leave their arrays (not checked)"] += 1
        elif outcome.failure is None:
            outcomes["agree"] += 1
        else:
            outcomes["failures"] += 1
            print(f"seed {outcome.seed}: {outcome.failure}", flush=True)
            if outcome.failure.stage == DIED:
                outcome = examine.after_death(outcome)
            print(outcome.test, flush=True)
    words = ", ".join(f"{count} {words}" for words, count in outcomes.items()) or "none"
    seconds = time.monotonic() - started
    print(f"{words}; {outcomes.total() / seconds:.2f} kernels/s, first seed {options.seed}")
    return 1 if outcomes["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())

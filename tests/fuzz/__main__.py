"""`python -m tests.fuzz`: random kernels, every form against every other.

    python -m tests.fuzz --count 200 --seed 0          # cases 0 .. 199
    python -m tests.fuzz --count 1 --seed 17 --every-pass

A failure is made small and printed as a test for `test_regressions.py`. The exit status is then 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from tests.fuzz.cases import Case
from tests.fuzz.execution import Check, Failure, InvalidCase, host_supports
from tests.fuzz.generator import make_case, make_source_case
from tests.fuzz.reporting import as_test
from tests.fuzz.schedules import PerturbedSchedule
from tests.fuzz.shrinking import Shrinker

CPUS = ("host", "host", "x86-64-v3", "x86-64-v3", "x86-64-v2", "x86-64-v4", "x86-64")


def check_for(seed: int, *, every_pass: bool = False, isolate: bool = True) -> Check:
    """How case `seed` is checked: for which CPU, and whether with a schedule of its own."""
    rng = random.Random(f"check {seed}")
    cpu = rng.choice([c for c in CPUS if host_supports(c)])
    if rng.random() < 0.4:
        return Check(cpu, PerturbedSchedule(seed), every_pass=every_pass, isolate=isolate)
    return Check(cpu, every_pass=every_pass, isolate=isolate)


def run_seed(seed: int, check: Check) -> tuple[Case, Failure | None]:
    """Make and check one case: every fourth from Python source, the others of Block IR.

    Raises:
        InvalidCase: the kernel leaves its arrays.
    """
    make = make_source_case if seed % 4 == 3 else make_case
    case = make(random.Random(seed))
    return case, check(case)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Compare all forms of random kernels."
    )
    parser.add_argument("--count", type=int, default=100, help="how many kernels (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="number of the first (default 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--every-pass", action="store_true", help="interpret the kernel after every pass")
    parser.add_argument("--no-shrink", action="store_true", help="report failures as they were found")
    parser.add_argument(
        "--shrink-seconds", type=float, default=120.0, help="time to shrink one failure (default 120)"
    )
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    outcomes: Counter[str] = Counter()
    deadline = time.monotonic() + options.seconds
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() > deadline:
            break
        check = check_for(seed, every_pass=options.every_pass)
        try:
            case, failure = run_seed(seed, check)
        except InvalidCase:
            outcomes["leave their arrays (not checked)"] += 1
            continue
        outcomes["failures" if failure else "agree"] += 1
        if failure is None:
            continue
        print(f"seed {seed}: {failure}", flush=True)
        if not options.no_shrink:
            shrinker = Shrinker(case, failure, check, options.shrink_seconds)
            shrinker.run()
            print(as_test(shrinker.case, shrinker.failure, check, seed), flush=True)
    print(", ".join(f"{count} {words}" for words, count in outcomes.items()))
    return 1 if outcomes["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare everything with Triton and print a table: `python -m tests.parity [FAMILY ...]`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.parity.comparing import UNEXPECTED, cases_of, deviation, run_both, verdict

VERDICTS = ("equal", "both refuse", "they refuse", "known", *UNEXPECTED)


def main(families: tuple[str, ...]) -> int:
    cases = cases_of(families)
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    unknown: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        results = run_both(cases, Path(folder))
    for case in cases:
        theirs, ours = results[case.name]
        found = verdict(case, theirs, ours)
        known = deviation(case, found)
        if known is not None:
            reasons[known.reason] += 1
        elif found in UNEXPECTED:
            detail = [r if isinstance(r, str) else r[0] for r in (theirs, ours)]
            unknown.append(f"{case.name}: {found}: {detail[0][:200]} | {detail[1][:300]}")
        counts[case.family, "known" if known else found] += 1
    print(f"| family | {' | '.join(VERDICTS)} |\n| --- {'| --- ' * len(VERDICTS)}|")
    for family in dict.fromkeys(case.family for case in cases):
        print(f"| {family} | {' | '.join(str(counts[family, v]) for v in VERDICTS)} |")
    print("\nKnown deviations:")
    for reason, count in reasons.most_common():
        print(f"- {count}: {reason}")
    print(f"\n{len(cases)} cases, {len(unknown)} unexplained")
    print("\n".join(unknown))
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:])))

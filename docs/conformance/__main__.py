"""Write docs/conformance.md, or check that it is in sync: `python -m docs.conformance [--check]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.conformance import page
from docs.conformance.model import State
from docs.conformance.rows import all_rows
from docs.conformance.running import run

TARGET = Path(__file__).resolve().parents[1] / "conformance.md"


def main() -> int:
    """Command line entry; the exit status is 1 for a stale page, or a row that failed."""
    parser = argparse.ArgumentParser(prog="python -m docs.conformance", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; compare rows and states, not times"
    )
    parser.add_argument("--only", default="", help="show the rows whose group or name has this text in it")
    options = parser.parse_args()
    rows = [r for r in all_rows() if options.only in f"{r.group}: {r.name}"]
    outcomes = list(run(rows, timed=not options.check))
    failed = [o for o in outcomes if o.state is State.FAILED]
    for outcome in failed:
        print(f"{outcome.row.group}: {outcome.row.name}: {outcome.reason}")
    print(page.summary(outcomes))
    if options.only:
        print(page.render(outcomes))
        return int(bool(failed))
    if not options.check:
        TARGET.write_text(page.render(outcomes), encoding="utf-8")
        print(f"wrote {TARGET}")
        return int(bool(failed))
    said = page.states_of(TARGET.read_text("utf-8")) if TARGET.exists() else {}
    now = page.states_now(outcomes)
    stale = [key for key in sorted({*said, *now}) if said.get(key) != now.get(key)]
    for group, name in stale:
        print(f"{group}: {name}: the page says {said.get((group, name))!r}, now {now.get((group, name))!r}")
    return int(bool(stale or failed))


if __name__ == "__main__":
    sys.exit(main())

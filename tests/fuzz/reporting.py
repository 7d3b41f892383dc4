"""A failing case as the source of a test."""

from __future__ import annotations

import textwrap

from blocklang.passes.schedule import choose_schedule
from tests.fuzz.cases import Case
from tests.fuzz.execution import Check, Failure


def as_test(case: Case, failure: Failure, check: Check, seed: int) -> str:
    """A test that fails as `case` does, ready for `test_regressions.py`."""
    cpu = "" if check.cpu == "host" else f', cpu="{check.cpu}"'
    schedule = "" if check.schedule is choose_schedule else f", schedule={check.schedule!r}"
    source = (
        f"        source={case.source!r},\n        constants={case.constants!r},\n" if case.source else ""
    )
    comment = textwrap.indent(textwrap.shorten(str(failure), 400), "    # ")
    return (
        f"def test_seed_{seed}() -> None:\n{comment}\n"
        f"    assert_agrees(\n"
        f'        """\n{textwrap.indent(case.kernel.strip(), " " * 8)}\n        """,\n'
        f"        arguments={case.arguments!r},\n"
        f"        memories={case.memories!r},\n"
        f"        grid={case.grid!r}{cpu}{schedule}{', debug=True' if check.debug else ''},\n{source}"
        f"    )\n"
    )

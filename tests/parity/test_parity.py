"""The same kernels under Triton's interpreter and here: same dtype, same values, or a reason in writing.

Needs the extra `parity`. A part of the cases runs here; `python -m tests.parity` runs all.
"""

from __future__ import annotations

import pytest

from tests.parity.cases import ALL, Case
from tests.parity.comparing import DEVIATIONS, UNEXPECTED, Result, deviation, run_both, verdict

pytest.importorskip("triton", reason="needs Triton itself: pip install 'blocklang[parity]'")
pytest.importorskip("torch", reason="needs PyTorch: pip install 'blocklang[parity]'")

pytestmark = pytest.mark.slow


def part() -> tuple[Case, ...]:
    """Every fifth pair of dtypes, and all of the smaller families."""
    many = ("promotion", "literals")
    large = [case for case in ALL if case.family in many]
    return tuple(large[::5]) + tuple(case for case in ALL if case.family not in many)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Result, Result]]:
    return run_both(part(), tmp_path_factory.mktemp("parity"))


@pytest.mark.parametrize("family", sorted({case.family for case in ALL}))
def test_a_family_agrees_with_triton(family: str, results: dict[str, tuple[Result, Result]]) -> None:
    differing = []
    compared = 0
    for case in part():
        if case.family != family:
            continue
        found = verdict(case, *results[case.name])
        compared += found == "equal"
        if found in UNEXPECTED and deviation(case, found) is None:
            differing.append((case.name, found))
    assert not differing
    assert compared >= 5


def test_known_deviations_still_deviate(results: dict[str, tuple[Result, Result]]) -> None:
    """A reason that no case needs any more is a reason to take out."""
    used = {deviation(case, verdict(case, *results[case.name])) for case in part()}
    assert set(DEVIATIONS) <= used

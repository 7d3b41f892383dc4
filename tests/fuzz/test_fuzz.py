"""A thousand random kernels with fixed seeds; more with `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import check_for, run_seed
from tests.fuzz.execution import InvalidCase

BATCH = 20


def _run(seeds: range) -> int:
    """How many of the seeds gave a case that could be checked; fails with the first that does not agree."""
    checked = 0
    for seed in seeds:
        try:
            _, failure = run_seed(seed, check_for(seed, all_forms=True, isolate=False))
        except InvalidCase:
            continue
        checked += 1
        assert failure is None, (
            f"seed {seed}: {failure}\nrun `python -m tests.fuzz --count 1 --every-pass --seed {seed}`"
        )
    return checked


@pytest.mark.parametrize("batch", range(10))
def test_all_forms_of_random_kernels_agree(batch: int) -> None:
    assert _run(range(batch * BATCH, (batch + 1) * BATCH)) > BATCH // 2


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(40))
def test_all_forms_of_more_random_kernels_agree(batch: int) -> None:
    assert _run(range(10_000 + batch * BATCH, 10_000 + (batch + 1) * BATCH)) > BATCH // 2

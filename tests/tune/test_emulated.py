"""Tuning under an emulation: the launches that only measure are not the program's."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.jit.recording import replace_launches


@bl.autotune([bl.Config({"BLOCK": size}) for size in (16, 64)], key=[])
@bl.jit
def double(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)


double_again = bl.autotune([bl.Config({"BLOCK": size}) for size in (16, 64)], key=[])(double.fn)


def test_who_wants_to_sees_what_is_measured() -> None:
    seen = []
    with replace_launches(lambda launch: seen.append(launch.grid)), bl.emulate("trn2") as run:
        double_again[lambda meta: (64 // meta["BLOCK"],)](np.ones(64, np.float32))
    assert {(4, 1, 1), (1, 1, 1)} <= set(seen)
    assert sum(launch.times for launch in run.launches) == 1


def test_what_is_only_measured_is_not_counted() -> None:
    x = np.ones(64, np.float32)
    with bl.emulate("trn2") as run:
        for _ in range(2):
            double[lambda meta: (64 // meta["BLOCK"],)](x)
    (launch,) = run.launches
    assert launch.times == 2
    assert launch.counts.memory["global"].bytes_read == x.nbytes

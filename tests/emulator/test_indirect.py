"""What is loaded to know where an access goes, or whether, is moved too, and waited for."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.emulation.profile import Profile

DEVICES = ("trn2", "h100", "mi300x")


@bl.jit
def gathered(x, where, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    i = tl.load(where + at)
    v = tl.load(x + i)
    tl.store(out + at, v)


@bl.jit
def scattered(x, where, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    i = tl.load(where + at)
    tl.store(out + i, 1.0)


@bl.jit
def one_of_many(x, where, out, BLOCK: tl.constexpr):
    i = tl.load(where)
    tl.store(out + i, 1.0)


@bl.jit
def masked(x, where, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    wanted = tl.load(where + at) > 0
    tl.store(out + at, 1.0, wanted)


@bl.jit
def printed(x, where, out, BLOCK: tl.constexpr):
    tl.device_print("first", tl.load(x))


def emulated(kernel: Any, device: str) -> Profile:
    x = np.ones(256, np.float32)
    where = np.random.default_rng(0).permutation(256).astype(np.int32)
    with bl.emulate(device) as run:
        kernel[(1,)](x, where, np.zeros(256, np.float32), BLOCK=256)
    return run


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [gathered, scattered, one_of_many, masked, printed], ids=str)
def test_every_load_moves_its_bytes(kernel: Any, device: str) -> None:
    run = emulated(kernel, device)
    (launch,) = run.launches
    assert launch.estimate is not None
    assert launch.estimate.seconds > 0
    counted = launch.counts.memory["global"]
    useful = counted.bytes_read + counted.bytes_written
    assert launch.estimate.useful_bytes >= useful
    assert launch.estimate.moved_bytes >= useful * 0.999


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [gathered, scattered, one_of_many, masked], ids=str)
def test_an_access_waits_for_its_addresses(kernel: Any, device: str) -> None:
    (launch,) = emulated(kernel, device).launches
    assert launch.estimate is not None
    moves = [e for e in launch.estimate.events if e.instruction.space == "global"]
    first, second = moves[:2]
    assert second.instruction.location.line > first.instruction.location.line
    assert second.start >= first.end + first.instruction.latency


def test_lines_have_the_time_of_addresses() -> None:
    run = emulated(gathered, "trn2")
    lines = {line["text"]: line["time_us"] for line in run.to_dict()["lines"]}
    assert lines["i = tl.load(where + at)"] > 0
    assert lines["v = tl.load(x + i)"] > 0

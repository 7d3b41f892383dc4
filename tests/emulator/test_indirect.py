"""What is loaded to know where an access goes, or whether, is moved too, and waited for."""

# mypy: disable-error-code="no-untyped-def,assignment"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.emulation.profile import Profile
from blocklang.target import find_device

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
def chased(x, where, out, BLOCK: tl.constexpr):
    i = 0
    for _ in range(BLOCK):
        i = tl.load(where + i)
    tl.store(out + i, 1.0)


@bl.jit
def chased_to_the_end(x, where, out, BLOCK: tl.constexpr):
    i = 0
    while tl.load(where + i) != 0:
        i = tl.load(where + i)
    tl.store(out + i, 1.0)


@bl.jit
def locked(lock, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(x, tl.load(x) + 1.0)
    tl.atomic_xchg(lock, 0)


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
@pytest.mark.parametrize("kernel", [gathered, scattered, one_of_many, masked, printed, chased], ids=str)
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


@pytest.mark.parametrize("kernel", [chased, chased_to_the_end], ids=str)
def test_each_round_waits_for_the_one_before(kernel: Any) -> None:
    device = find_device("trn2")
    where = np.roll(np.arange(32), -1).astype(np.int32)  # each place names the next
    out = np.zeros(32, np.float32)
    with bl.emulate(device) as run:
        kernel[(1,)](out, where, out, BLOCK=31)
    assert run.seconds is not None
    assert run.seconds > 31 * device.dma.start_seconds


@pytest.mark.parametrize("device", DEVICES)
def test_a_condition_is_asked_once_more_than_it_holds(device: str) -> None:
    x, lock = np.zeros(1, np.float32), np.zeros(1, np.int32)
    with bl.emulate(device) as run:
        locked[(1,)](lock, x)
    (launch,) = run.launches
    assert launch.estimate is not None
    moves = [e for e in launch.estimate.events if e.instruction.space == "global"]
    assert [e.instruction.label for e in moves] == ["atomic_cas", "load", "store", "atomic_rmw"]
    counted = launch.counts.memory["global"]
    assert launch.estimate.useful_bytes >= counted.bytes_read + counted.bytes_written

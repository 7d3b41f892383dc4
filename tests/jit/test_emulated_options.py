"""An emulated launch is compiled and run as its options and switches say, like the plain one."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.diagnostics import BlocklangError, CheckError, DeviceAssertionError, LaunchError, UsageError
from blocklang.jit import emulating
from blocklang.target import device_text

DEVICES = ("trn2", "h100")


@bl.jit
def multiply_add(a, b, c, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at) * tl.load(b + at) + tl.load(c + at))


@bl.jit
def masked_copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n))


@bl.jit
def running_sum(x, out, BLOCK: tl.constexpr):
    tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0))


@bl.jit
def windows(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(3):
        total += tl.load(x + at + i, at < n)
    tl.device_assert(total < 100, "too much")
    tl.store(out + at, total, at < n)


def numbers(seed: int, size: int) -> Any:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", [False, True])
def test_fused_multiply_adds(device: str, fused: bool) -> None:
    a, b, c = (numbers(seed, 1024) for seed in range(3))
    plain, emulated = np.empty((2, 1024), np.float32)
    multiply_add[(4,)](a, b, c, plain, BLOCK=256, enable_fp_fusion=fused)
    with bl.emulate(device):
        multiply_add[(4,)](a, b, c, emulated, BLOCK=256, enable_fp_fusion=fused)
    np.testing.assert_array_equal(emulated, plain)


@pytest.mark.parametrize("device", DEVICES)
def test_masked_lanes_are_poisoned(device: str) -> None:
    plain, emulated = np.zeros((2, 64), np.float32)
    masked_copy[(1,)](numbers(0, 64), plain, 50, BLOCK=64, debug="poison")
    with bl.emulate(device):
        masked_copy[(1,)](numbers(0, 64), emulated, 50, BLOCK=64, debug="poison")
    assert np.isnan(emulated[50:]).all()
    np.testing.assert_array_equal(emulated, plain)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("given", "debug", "error"),
    [
        ("short", True, CheckError),
        ("large", True, DeviceAssertionError),
        ("infinite", "nan", CheckError),
    ],
)
def test_what_a_debug_launch_finds(
    device: str, given: str, debug: bool | str, error: type[BlocklangError]
) -> None:
    x, out = np.ones(1002, np.float32), np.zeros(1000, np.float32)
    n = 1100 if given == "short" else 1000
    if given == "large":
        x[5] = 99
    if given == "infinite":
        x[3:5] = np.inf, -np.inf

    def launch() -> None:
        windows[(9,)](x, out, n, BLOCK=128, debug=debug)

    with pytest.raises(error) as plain:
        launch()
    with pytest.raises(error) as emulated, bl.emulate(device):
        launch()
    assert str(emulated.value) == str(plain.value)


def test_checks_are_not_timed() -> None:
    x, out = np.ones((2, 1024), np.float32)

    def report(debug: bool) -> dict[str, Any]:
        with bl.emulate("trn2") as run:
            masked_copy[(1,)](x, out, 900, BLOCK=1024, debug=debug)
        return run.to_dict()

    assert report(True) == report(False)


def test_deterministic_launches_have_one_thread() -> None:
    x = numbers(0, 64 * 2000)
    totals = []
    for _ in range(3):
        total = np.zeros(1, np.float32)
        with bl.emulate("trn2"):
            running_sum[(2000,)](x, total, BLOCK=64, deterministic=True)
        totals.append(total[0])
    plain = np.zeros(1, np.float32)
    running_sum[(2000,)](x, plain, BLOCK=64, deterministic=True)
    assert totals == [plain[0]] * 3


def test_threads_that_launch_at_once() -> None:
    def work(seed: int) -> None:
        a, b, c = (numbers(seed + i, 1024) for i in range(3))
        out = np.empty(1024, np.float32)
        for _ in range(20):
            multiply_add[(4,)](a, b, c, out, BLOCK=256)
            np.testing.assert_array_equal(out, a * b + c)

    with bl.emulate("h100") as run, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sum(launch.times for launch in run.launches) == 80


@pytest.mark.parametrize("device", [3, None, np.float32])
def test_what_is_no_device(device: Any) -> None:
    with pytest.raises(UsageError, match="is no device"), bl.emulate(device):
        pass
    with pytest.raises(UsageError, match="is no device"):
        bl.device(device)


def test_a_path_is_a_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(device_text("trn2").replace('name = "trn2"', 'name = "mine"'), encoding="utf-8")
    with bl.emulate(path) as run:
        multiply_add[(1,)](*(numbers(seed, 64) for seed in range(4)), BLOCK=64)
    assert run.device.name == bl.device(path).name == "mine"
    with pytest.raises(UsageError, match="cannot read"), bl.emulate("a\0.toml"):
        pass


def test_more_programs_than_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulating, "MOST_COUNTERS", 8000)
    a = np.zeros(1024, np.float32)
    with pytest.raises(LaunchError, match="are too many to be emulated") as failure, bl.emulate("trn2"):
        multiply_add[(1024,)](a, a, a, a, BLOCK=1)
    assert failure.value.location is not None


def test_a_run_without_launches_says_so() -> None:
    interpreted = bl.JITFunction(multiply_add.fn, interpret=True)
    with bl.emulate("trn2") as run:
        interpreted[(1,)](*(numbers(seed, 64) for seed in range(4)), BLOCK=64)
    assert "no launches" in str(run)
    assert run.seconds is None

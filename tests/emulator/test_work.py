"""The arithmetic of a launch, against what one counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
from blocklang.emulation.profile import LaunchProfile
from blocklang.emulation.roofline import Roof, roofline_of
from blocklang.emulation.work import Work
from blocklang.target import find_device
from tests.emulator.reported import counting, matmul_profile, rounds, softmax_profile, untimed


def work_of(launch: LaunchProfile) -> Work:
    assert launch.work is not None
    return launch.work


def test_a_product() -> None:
    (launch,) = matmul_profile("trn2").launches
    assert work_of(launch) == Work({"f32": 2 * 256**3}, 0.0)


def test_a_softmax() -> None:
    """Maximum, difference, exp, sum, quotient: five for each lane of a block, masked ones too."""
    (launch,) = softmax_profile("trn2").launches
    assert work_of(launch) == Work({}, 200 * 512 * 5)


def test_loops_and_branches() -> None:
    out = np.ones(4 * 16, np.float32)
    with bl.emulate("trn2") as profile:
        rounds[(4,)](out, 9, B=16)
    (launch,) = profile.launches
    halved = sum(len(range(pid, 9)) for pid in range(4))
    fused = sum(i % 2 == 0 for pid in range(4) for i in range(pid, 9))
    assert work_of(launch).lanes == pytest.approx(16 * (halved + 2 * fused))


def test_integers_are_no_floating_point_work() -> None:
    out = np.zeros(64, np.int32)
    with bl.emulate("trn2") as profile:
        counting[(4,)](out, B=16)
    (launch,) = profile.launches
    assert work_of(launch) == Work({}, 0.0)
    assert roofline_of(launch, profile.device) is None


def test_no_program() -> None:
    with bl.emulate("trn2") as profile:
        counting[(0,)](np.zeros(1, np.int32), B=16)
    assert [work_of(launch) for launch in profile.launches] == [Work({}, 0.0)] * len(profile.launches)


# ---- rooflines ----


def test_roofs_of_a_neuron_core() -> None:
    profile = matmul_profile("trn2")
    (launch,) = profile.launches
    found = roofline_of(launch, profile.device)
    assert found is not None
    assert launch.estimate is not None
    moved = launch.counts.memory["global"].bytes
    assert found.intensity == pytest.approx(2 * 256**3 / moved)
    assert found.rate == pytest.approx(2 * 256**3 / launch.estimate.seconds)
    device = find_device("trn2")
    assert device.dma.core_bandwidth is not None
    assert found.bandwidth == device.dma.core_bandwidth.value
    assert found.roofs == (Roof("tensor f32", device.engines["tensor"].ops_per_second("f32")),)
    assert found.bound == min(found.roofs[0].rate, found.bandwidth * found.intensity)
    assert found.rate < found.bound


def test_roofs_of_a_gpu() -> None:
    profile = softmax_profile("h100")
    found = roofline_of(profile.launches[0], profile.device)
    assert found is not None
    device = find_device("h100")
    bandwidth = device.memory["global"].bandwidth
    assert bandwidth is not None
    assert found.bandwidth == bandwidth.value
    assert found.roofs == (Roof("simt f32", device.engines["simt"].ops_per_second("f32")),)
    assert found.bound == found.bandwidth * found.intensity


def test_no_time_no_roofline() -> None:
    profile = matmul_profile(untimed())
    assert work_of(profile.launches[0]).products == {"f32": 2 * 256**3}
    assert roofline_of(profile.launches[0], profile.device) is None

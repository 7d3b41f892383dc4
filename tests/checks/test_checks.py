"""`check_launches`: every planted fault is found at its line, and nothing is said of clean kernels."""

from __future__ import annotations

import ctypes
import linecache
from collections.abc import Callable

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.diagnostics import Location
from blocklang.jit import Launch, check_launches
from blocklang.jit.recording import replace_launches, replaced_by
from blocklang.runtime.arrays import Array
from blocklang.runtime.findings import Finding
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.watching import watch_empty
from blocklang.target import find_device
from tests.behaviour.rows import row
from tests.checks.clean import clean, copy
from tests.checks.faulty import faulty

FAULTY, CLEAN = faulty.by_name, clean.by_name


def mark(location: Location) -> str:
    """What stands behind the code of a line."""
    return linecache.getline(location.file, location.line).partition("#")[2].strip()


def words_of(finding: Finding) -> str:
    return str(finding.error)


@pytest.mark.parametrize("name", FAULTY)
@row("Memory", "bounds, races, NaN")
def test_a_planted_fault_is_found(name: str) -> None:
    """A fault is told with its line, program, lane, array and offset, and in a race the earlier access."""
    case = FAULTY[name]
    with check_launches() as found:
        case.launch()
    assert found.items, "nothing was found"
    for finding in found.items:
        said = words_of(finding)
        assert finding.kind == case.kind, said
        assert "here" in mark(finding.location), said
    said = words_of(found.items[0])
    assert all(word in said for word in case.words), said
    first = found.items[0]
    assert first.program is not None
    assert first.lane is not None
    if case.kind == "race":
        assert first.earlier is not None
        assert first.array is not None
        earlier = Location(first.earlier["file"], first.earlier["line"])
        assert "before" in mark(earlier)
        assert first.earlier["program"][::-1] < first.program[::-1], "programs run in ascending order"


@pytest.mark.parametrize("name", CLEAN)
@row("Memory", "bounds, races, NaN")
def test_nothing_is_said_of_a_clean_kernel(name: str) -> None:
    """What only looks suspicious is no finding, and its results are those of the plain launch."""
    with check_launches() as found:
        CLEAN[name].launch()
    assert found.launches
    assert not found.items, words_of(found.items[0])


def test_there_are_as_many_kernels_as_promised() -> None:
    assert len(FAULTY) >= 40
    assert len(CLEAN) >= 40


def run_plainly(launch: Launch) -> None:
    """Run a launch on one thread, as it runs where nothing replaces it."""
    compiled = launch.compiled
    LoadedKernel(compiled.abi, compiled.object_code).launch(launch.slots, launch.grid, 1, launch.arrays)


def arrays_after(launch: Callable[[], object]) -> list[bytes]:
    """The bytes of every array that some launches were given, after the last; checked if others are."""
    arrays: list[Array] = []
    run = replaced_by() or run_plainly

    def observe(one: Launch) -> None:
        arrays.extend(one.arrays.values())
        run(one)

    with replace_launches(observe):
        launch()
    return [ctypes.string_at((span := a.byte_range())[0], span[1] - span[0]) for a in arrays]


@pytest.mark.parametrize("name", CLEAN)
def test_results_are_those_of_a_plain_launch(name: str) -> None:
    plain = arrays_after(CLEAN[name].launch)
    with check_launches():
        checked = arrays_after(CLEAN[name].launch)
    assert plain
    assert checked == plain


def test_programs_go_on_after_a_race() -> None:
    """What a fault that does no harm leaves in memory is what a plain launch leaves there."""
    for name in ("shift_left_in_place", "a_histogram_without_atomics", "the_logarithm_of_negative_numbers"):
        plain = arrays_after(FAULTY[name].launch)
        with check_launches() as found:
            assert arrays_after(FAULTY[name].launch) == plain
        assert found.items


def test_a_finding_is_one_per_line_and_kind() -> None:
    with check_launches() as found:
        for _ in range(3):
            FAULTY["shift_left_in_place"].launch()
    (finding,) = found.items
    assert (finding.launch, finding.count, found.launches) == (1, 9, 3)


def test_words_of_an_earlier_launch_do_not_count() -> None:
    """Neither of the same arrays, nor of others that get their memory."""
    with check_launches() as found:
        for name in CLEAN:
            if "lock" in name or "ping" in name or "in_place" in name:
                CLEAN[name].launch()
                CLEAN[name].launch()
    assert not found.items


def test_nan_can_be_left_out() -> None:
    with check_launches(nan=False) as found:
        FAULTY["the_logarithm_of_negative_numbers"].launch()
    assert not found.items


def test_a_kernel_that_does_not_fit_the_device_is_a_finding_and_runs() -> None:
    with check_launches(find_device("trn2")) as found:
        CLEAN["in_place"].launch()
        assert not found.items
        x = np.zeros((2048, 8192), np.float32)
        too_large[1](x, M=2048, N=8192)
    (finding,) = found.items
    assert (finding.kind, finding.program, finding.kernel) == ("capacity", None, "too_large")
    assert "does not fit trn2" in finding.error.message
    assert (x == 1 / 8192).all()


@bl.jit
def too_large(x, M: bl.constexpr, N: bl.constexpr):  # type: ignore[no-untyped-def]
    at = x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.exp(tl.load(at))
    tl.store(at, v / tl.sum(v, 1)[:, None])


def test_arrays_of_numpy_empty_can_be_watched() -> None:
    make = np.empty
    with watch_empty():
        x = np.empty(64, np.float32)
        y = np.empty_like(x)
    assert np.empty is make
    with check_launches() as found:
        copy[4](x, y, 64, BLOCK=16)
        x[:] = 0
        copy[4](x, y, 64, BLOCK=16)
        copy[4](y, x, 64, BLOCK=16)
    (finding,) = found.items
    assert (finding.kind, finding.launch) == ("unwritten", 1)

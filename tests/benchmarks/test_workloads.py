"""Every workload, at sizes that take no time: each peer that is installed gives the exact result.

The peers run in this process, one after the other, and nothing is timed.
"""

from __future__ import annotations

import inspect
import shutil
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import native
from benchmarks.catalogue import ENTRIES, FAMILIES, choose
from benchmarks.fresh import FRESH
from benchmarks.limits import Limits
from benchmarks.peers import OURS, PEERS, absence_of
from benchmarks.workload import Array, Entry, Work, Workload
from benchmarks.workloads import attention, launch, memory, products
from blocklang.tune import Autotuner

# A peer that is not installed is none: what is tested grows with the extra `bench`.
INSTALLED = [peer for peer in PEERS if absence_of(peer) is None]
CASES = [(name, peer) for name, entry in ENTRIES.items() for peer in INSTALLED if hasattr(entry.make, peer)]
WITH_RESULT = [name for name in ENTRIES if name != "launch-empty"]


@pytest.fixture(autouse=True)
def _untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels take their first config: which one is the fastest at these sizes does not matter."""
    for module in (attention, launch, memory, products):
        for _, tuner in inspect.getmembers(module, lambda member: isinstance(member, Autotuner)):
            monkeypatch.setattr(tuner, "configs", tuner.configs[:1])


@cache
def prepared(name: str) -> tuple[Workload, Array]:
    workload = ENTRIES[name].build(small=True)
    return workload, workload.exact()


@pytest.mark.parametrize(("name", "peer"), CASES)
def test_peer_is_right(name: str, peer: str) -> None:
    workload, exact = prepared(name)
    with warnings.catch_warnings():
        if peer != OURS:
            warnings.simplefilter("ignore")  # what other libraries warn of at import is theirs
        call = getattr(workload, peer)()
        workload.check(call(), exact, peer)
        workload.check(call(), exact, peer)  # a second call starts from scratch


@pytest.mark.parametrize("name", WITH_RESULT)
def test_a_wrong_result_is_found(name: str) -> None:
    workload, exact = prepared(name)
    wrong = exact.copy().reshape(-1)
    changed = wrong[: wrong.size // 10 + 1]
    changed += abs(changed).max() + 1
    with pytest.raises(AssertionError):
        workload.check(wrong.reshape(exact.shape), exact, OURS)


@pytest.mark.parametrize("name", ENTRIES)
def test_we_and_another_take_part(name: str) -> None:
    entry = ENTRIES[name]
    assert hasattr(entry.make, OURS)
    assert sum(hasattr(entry.make, peer) for peer in PEERS) >= 3


@pytest.mark.parametrize("name", FRESH)
def test_fresh_peers_have_the_workload(name: str) -> None:
    entry = FRESH[name]
    assert entry.make is None or all(hasattr(entry.make, peer) for peer in entry.peers)


def test_names_are_distinct_from_families_and_each_other() -> None:
    names = [entry.name for entries in FAMILIES.values() for entry in entries]
    assert len(set(names)) == len(names)
    titles = [entry.title for entry in ENTRIES.values()]
    assert len(set(titles)) == len(titles)


def test_choose_by_name_stem_family_and_pattern() -> None:
    assert choose(["rmsnorm"]) == ["rmsnorm"]
    assert choose(["softmax"]) == ["softmax-4096x1024", "softmax-1823x781"]
    assert choose(["fresh"]) == list(FRESH)
    assert choose(["matmul-?p16", "add-64M"]) == ["add-64M", "matmul-fp16"]  # in the table's order
    assert choose([]) == [*ENTRIES, *FRESH]


def test_least_time_of_work() -> None:
    limits = Limits({"fp32": 1e9, "int8": 4e9}, read={100: 1e3, 1000: 1e2}, triad={100: 5e2, 1000: 50})
    assert limits.seconds(Work(read=80, written=0)) == 0.08
    assert limits.seconds(Work(read=101, written=0)) == 1.01
    assert limits.seconds(Work(read=40, written=40)) == 0.16
    assert limits.seconds(Work(read=0, written=5000)) == 100  # past the largest footprint
    assert limits.seconds(Work(0, 0, operations=8 * 10**9, kind="int8")) == 2


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the limits are measured by C, and there is no gcc")
def test_limits_are_measured() -> None:
    from benchmarks.limits import measure_limits

    limits = measure_limits(1)
    rates = [*limits.operations.values(), *limits.read.values(), *limits.triad.values()]
    assert all(np.isfinite(rates))
    assert min(rates) > 1e6
    assert Limits.from_json(limits.to_json()) == limits


def test_entries_have_small_sizes() -> None:
    for entry in ENTRIES.values():
        assert isinstance(entry, Entry)
        assert entry.small.keys() == entry.sizes.keys(), entry.name


def test_a_gcc_that_compiles_nothing_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\necho unknown option >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "COMPILER", str(compiler))
    assert absence_of("c") == f"{compiler} cannot compile: unknown option"
    monkeypatch.setattr(native, "COMPILER", str(tmp_path / "none"))
    assert absence_of("c") == f"no {tmp_path}/none on the path"

"""How many threads a launch uses: environment, affinity, quota, settings and contexts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from blocklang.diagnostics import UsageError
from blocklang.runtime import threads
from blocklang.runtime.threads import available_cpus, get_num_threads, num_threads, set_num_threads


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("BLOCKLANG_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_default", None)
    yield
    set_num_threads(None)
    threads._forget_default()


def test_own_variable_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_NUM_THREADS", "7")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert get_num_threads() == 7


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_wrong_own_variable_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("BLOCKLANG_NUM_THREADS", text)
    with pytest.raises(UsageError, match="BLOCKLANG_NUM_THREADS"):
        get_num_threads()


def test_openmp_variable_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1,4")
    assert get_num_threads() == 1


def test_a_wrong_openmp_variable_is_ignored_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "lots")
    with pytest.warns(UserWarning, match="OMP_NUM_THREADS"):
        assert get_num_threads() == available_cpus()


def test_affinity_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5}, raising=False)
    assert available_cpus() == 1


@pytest.mark.parametrize(("text", "cpus"), [("max 100000", 64), ("250000 100000", 3), ("50000 100000", 1)])
def test_cgroup_quota_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, cpus: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(threads, "_cgroup_directories", lambda root: [root])
    assert available_cpus(tmp_path) == cpus


def test_old_cgroup_quota_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    (tmp_path / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    monkeypatch.setattr(threads, "_cgroup_directories", lambda root: [root])
    assert available_cpus(tmp_path) == 2


def test_settings_and_contexts_nest() -> None:
    set_num_threads(5)
    with num_threads(3):
        with num_threads(2):
            assert get_num_threads() == 2
        assert get_num_threads() == 3
    assert get_num_threads() == 5


def test_a_context_is_of_one_thread_a_setting_of_all() -> None:
    seen: list[int] = []
    set_num_threads(5)
    with num_threads(3):
        thread = threading.Thread(target=lambda: seen.append(get_num_threads()))
        thread.start()
        thread.join()
    assert seen == [5]


@pytest.mark.parametrize("count", [0, -3, 1.5, "2", True, None])
def test_a_wrong_count_is_refused(count: object) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        num_threads(count)  # type: ignore[arg-type]

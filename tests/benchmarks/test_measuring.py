"""Turns, processes and reports; how long anything takes is not judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.limits import Limits
from benchmarks.markdown import to_markdown
from benchmarks.measuring import LEAST_SAMPLES, Sample, take_turns
from benchmarks.native import absence_of_compiler
from benchmarks.peers import OURS, environment_for
from benchmarks.plot import write_plot
from benchmarks.pool import PeerFailure, Pool
from benchmarks.results import Report, Result, Timing
from benchmarks.workload import Work
from blocklang.diagnostics import UsageError


def test_peers_take_turns() -> None:
    order: list[str] = []

    def sample(peer: str) -> Sample:
        order.append(peer)
        return float(len(order)), 1.0

    timings = take_turns({"a": sample, "b": sample}, 0.0, {})
    assert order == ["a", "b"]  # all the time is used up after one sample of each
    assert timings["b"].times == (2.0,)
    assert timings["b"].cores == 1.0


def test_every_peer_has_some_samples_while_there_is_time() -> None:
    timings = take_turns(dict.fromkeys("ab", lambda peer: (1.0, 1.0)), 1.0, {})
    assert all(len(timing.times) >= LEAST_SAMPLES for timing in timings.values())


def test_a_peer_that_fails_stops_alone() -> None:
    def sample(peer: str) -> Sample:
        if peer == "a":
            raise PeerFailure("gone")
        return 1.0, 1.0

    timings = take_turns({"a": sample, "b": sample}, 0.01, {"c": "wrong"})
    assert timings["a"] == Timing(failure="gone")
    assert timings["c"] == Timing(failure="wrong")
    assert timings["b"].times


def test_a_process_outlives_a_failure_and_is_replaced_when_it_ends() -> None:
    with Pool(["numpy"], 1) as pool:
        process = pool["numpy"]
        with pytest.raises(PeerFailure, match="KeyError: 'nothing'"):
            process.ask({"do": "prepare", "workload": "nothing", "small": True, "exact": ""})
        assert pool["numpy"] is process
        assert process.ask({"do": "run", "calls": 3, "warm": True})["seconds"] >= 0
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(PeerFailure, match="ended with status -9"):
            process.ask({"do": "run", "calls": 3, "warm": True})
        assert pool["numpy"] is not process


def test_environment_fixes_threads_and_forgets_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environment = environment_for(2)
    assert "OPENBLAS_CORETYPE" not in environment
    assert {environment[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC")} == {"2"}


# ---- reports ----


def result(name: str = "rmsnorm", threads: int = 1, ours: float = 0.002, **others: float) -> Result:
    timings = {OURS: Timing((ours, 2 * ours, 2 * ours), 1.0)}
    timings |= {peer: Timing((seconds,), 1.0) for peer, seconds in others.items()}
    return Result(name, f"title of {name}", "rows", threads, Work(1000, 1000), timings)


def report(*results: Result, **absent: str) -> Report:
    limits = Limits({"fp32": 1e9, "int8": 1e9}, {4096: 1e6}, {4096: 1e6})
    return Report(
        "a machine", ["blocklang bench"], {OURS: "1", "numpy": "2"}, absent, {1: limits}, [*results]
    )


def test_ratio_is_of_medians_to_the_best_peer() -> None:
    row = result(numpy=0.008, c=0.006)
    assert row.best_peer == "c"
    assert row.ratio == pytest.approx(1.5)
    assert row.ratio_of_bests == pytest.approx(3.0)
    assert report(row).share(row, OURS) == pytest.approx(0.5)
    assert report(row).share(row, "numba") is None


def test_no_ratio_without_another_peer() -> None:
    assert result().ratio is None
    failed = Result("rmsnorm", "", "rows", 1, None, {OURS: Timing(failure="wrong"), "numpy": Timing((1.0,))})
    assert failed.ratio is None
    assert report(failed).failures() == ["rmsnorm, blocklang, 1 thread: wrong"]


def test_json_is_read_back(tmp_path: Path) -> None:
    made = report(result(numpy=0.008), torch="not installed")
    file = tmp_path / "report.json"
    file.write_text(made.to_json())
    assert Report.read(file) == made


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"format": 99})])
def test_other_files_are_no_reports(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="is no report of this command"):
        Report.read(file)


def test_appending_replaces_rows_and_keeps_the_others() -> None:
    earlier = report(result("rmsnorm", numpy=1.0), result("topk", numpy=1.0), result("topk", 2), c="no gcc")
    later = report(result("rmsnorm", numpy=2.0), result("add-16M"))
    later.versions["c"] = "gcc 12"
    faster = Limits({"fp32": 2e9, "int8": 1e8}, {4096: 1e6}, {4096: 1e6})
    later.limits[1] = faster
    joined = later.continued(earlier, ["add-16M", "rmsnorm", "topk"])
    rows = [("add-16M", 1), ("rmsnorm", 1), ("topk", 1), ("topk", 2)]
    assert [(row.workload, row.threads) for row in joined.results] == rows
    assert joined.results[1].timings["numpy"].times == (2.0,)
    assert joined.absent == {}
    assert joined.limits[1].operations == {"fp32": 2e9, "int8": 1e9}


def test_markdown() -> None:
    text = to_markdown(report(result(numpy=0.008, c=0.006), result(threads=2), torch="not installed"))
    expected = "| title of rmsnorm (`rmsnorm`) | 4 (2) | 8 (8) | **6 (6)** | 1.50 (3.00) | 50%, 33% |"
    assert expected in text.splitlines()
    assert "## 2 threads" in text
    assert "Absent: PyTorch (not installed)." in text


def test_markdown_marks_more_cores_than_threads() -> None:
    timings = {OURS: Timing((0.001,), 1.0), "jax": Timing((0.001,), 1.9)}
    row = Result("rmsnorm", "RMS norm", "rows", 1, None, timings)
    assert "[1.9 cores]" in to_markdown(report(row))


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="a plot needs matplotlib, which the extra `bench` installs")
    file = tmp_path / f"plot.{suffix}"
    write_plot(report(result(numpy=0.008), result("topk", numpy=0.001), result(threads=2, c=0.1)), file)
    assert file.stat().st_size > 1000


def test_plot_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UsageError, match="needs matplotlib"):
        write_plot(report(result(numpy=0.008)), tmp_path / "plot.svg")


@pytest.mark.skipif(absence_of_compiler() is not None, reason="there is no gcc that compiles the C sources")
def test_a_c_library_leaves_the_arithmetic_of_its_process_alone() -> None:
    """Subnormals stay, in a process that has loaded one."""
    program = (
        "from benchmarks.native import compile_c; compile_c('launch'); "
        "import numpy as np; print(np.float32(1e-40) * np.float32(0.5) > 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == "True", done.stderr

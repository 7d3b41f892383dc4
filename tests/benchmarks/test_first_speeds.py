"""The benchmark runs: its peers are checked, take turns, and come out as a table. No time is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.first_speeds", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_json() -> None:
    done = run("launch", "softmax", "--turns", "2", "--json")
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)["samples"]
    assert list(samples) == ["softmax", "launch"]
    assert all(len(peer["times"]) == 2 for row in samples.values() for peer in row.values())


@pytest.mark.slow
def test_markdown() -> None:
    done = run("launch", "--turns", "1")
    assert done.returncode == 0, done.stderr
    assert "`python -m benchmarks.first_speeds launch --turns 1`" in done.stdout
    assert "| 1000 warm launches of 64 numbers | 1 |" in done.stdout


def test_unknown_row() -> None:
    done = run("nothing")
    assert done.returncode == 2
    assert "no such row: nothing" in done.stderr

"""The command that measures cold compile times."""

from __future__ import annotations

import re
import subprocess
import sys

from benchmarks.compile_time import GOALS, ROOT


def test_it_measures_fresh_processes() -> None:
    command = [sys.executable, "-m", "benchmarks.compile_time", "--rounds", "1", "--stages", "add"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^\| add \| [\d.]+ \([\d.]+\) \| {GOALS['add']} \| \d+ \|$", text, re.MULTILINE)
    assert re.search(r"^  frontend +[\d.]+$", text, re.MULTILINE)
    assert re.search(r"^  llvm_code_generation +[\d.]+$", text, re.MULTILINE)

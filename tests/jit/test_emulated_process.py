"""BLOCKLANG_DEVICE and BLOCKLANG_PROFILE: a whole process is emulated, and one without them pays nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import numpy as np

import blocklang as bl
import blocklang.language as tl


@bl.jit
def double(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) * 2)


x = np.arange(256, dtype=np.float32)
double[(4,)](x, B=64)
double[(4,)](x, B=64)
print(x[:4].tolist())
"""


def run(tmp_path: Path, script: str = SCRIPT, **variables: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "script.py"
    file.write_text(script, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BLOCKLANG_")}
    environment |= {"PYTHONPATH": str(ROOT), "BLOCKLANG_CACHE": "0", **variables}
    command = [sys.executable, file.name]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_table_at_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, BLOCKLANG_DEVICE="trn2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0.0, 4.0, 8.0, 12.0]\n"
    assert done.stderr.startswith("trn2: one NeuronCore-v3 of a Trainium 2\n")
    assert "double (script.py:9:5), 4 programs, 2 equal launches" in done.stderr
    assert "time: " in done.stderr


@pytest.mark.parametrize("name", ["run.json", "run.html", "run.trace.json"])
def test_report_in_a_file(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, BLOCKLANG_DEVICE="h100", BLOCKLANG_PROFILE=name)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / name).read_text(encoding="utf-8")
    if name == "run.json":
        assert json.loads(text)["launches"][0]["times"] == 2
    else:
        assert "double" in text


def test_what_the_process_emulates_itself_stays_apart(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "double[(4,)](x, B=64)\nprint", 'with bl.emulate("h100") as own:\n    double[(4,)](x, B=64)\nprint'
    )
    script += "print(len(own.launches), own.launches[0].times)\n"
    done = run(tmp_path, script, BLOCKLANG_DEVICE="trn2")
    assert done.stdout == "[0.0, 4.0, 8.0, 12.0]\n1 1\n"
    assert "double (script.py:9:5), 4 programs\n" in done.stderr
    assert "h100" not in done.stderr


def test_the_other_way_round(tmp_path: Path) -> None:
    """The first launch of the process is one that it emulates itself."""
    script = SCRIPT.replace(
        "double[(4,)](x, B=64)\ndouble", 'with bl.emulate("h100") as own:\n    double[(4,)](x, B=64)\ndouble'
    )
    done = run(tmp_path, script, BLOCKLANG_DEVICE="trn2")
    assert done.stdout == "[0.0, 4.0, 8.0, 12.0]\n"
    assert "double (script.py:9:5), 4 programs\n" in done.stderr
    assert done.stderr.startswith("trn2")


def test_a_process_without_launches_says_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "import blocklang\n", BLOCKLANG_DEVICE="trn2", BLOCKLANG_PROFILE="run.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "run.json").exists()


def test_an_unknown_device(tmp_path: Path) -> None:
    """Told by the first launch."""
    done = run(tmp_path, BLOCKLANG_DEVICE="trn4")
    assert done.returncode == 1
    assert "UsageError: error: BLOCKLANG_DEVICE: there is no device 'trn4'" in done.stderr
    assert "did you mean" in done.stderr


def test_an_unknown_form_of_report(tmp_path: Path) -> None:
    """Told before the work is done."""
    done = run(tmp_path, BLOCKLANG_DEVICE="trn2", BLOCKLANG_PROFILE="run.txt")
    assert done.returncode == 1
    assert "BLOCKLANG_PROFILE: cannot tell from its name what kind of report run.txt is" in done.stderr
    assert done.stdout == ""


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    """The work is done; the table is there."""
    done = run(tmp_path, BLOCKLANG_DEVICE="trn2", BLOCKLANG_PROFILE="nowhere/run.json")
    assert done.stdout == "[0.0, 4.0, 8.0, 12.0]\n"
    assert "2 equal launches" in done.stderr
    assert "error: cannot write nowhere/run.json: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_variable_nothing_is_imported(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import sys\n"
        "print([m for m in sys.modules if 'emulat' in m and m.startswith('blocklang')])\n"
        "from blocklang.jit.recording import is_recording\n"
        "print(is_recording())\n"
    )
    done = run(tmp_path, script, BLOCKLANG_PROFILE="run.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0.0, 4.0, 8.0, 12.0]\n[]\nFalse\n"
    assert done.stderr == ""

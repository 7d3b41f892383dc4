"""`blocklang check` as a user types it: its report, its JSON, its exit status, its answers to mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blocklang.cli import main

KERNELS = """
import sys
import numpy as np
import blocklang as bl
import blocklang.language as tl

@bl.jit
def shift(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + 1, i < n)
    tl.store(x + i, v, i < n)

@bl.jit
def fill(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, i < n)

x = np.arange(60, dtype=np.float32)
"""
CLEAN = KERNELS + "fill[4](x, 60, BLOCK=16)\nfill[8](x, 60, BLOCK=8)\nprint('done', sys.argv[1:])\n"
FAULTY = KERNELS + "shift[4](x, 60, BLOCK=16)\nprint('goes on')\nfill[4](x, 60, BLOCK=16)\n"


def check(tmp_path: Path, text: str, *arguments: str) -> Result:
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, ["check", str(script), *arguments], prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("device", [[], ["--device", "none"], ["--device", "trn2"]])
def test_a_clean_script(tmp_path: Path, device: list[str]) -> None:
    result = check(tmp_path, CLEAN, "an-argument", *device)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "no findings in 2 launches of 1 kernel\n"
    assert "done ['an-argument']" in result.stderr


def test_a_script_with_findings(tmp_path: Path) -> None:
    result = check(tmp_path, FAULTY)
    assert result.exit_code == 1
    assert "goes on" in result.stderr
    assert result.stdout == (
        "script.py:11:5: error: race: store, lane [0]: element offset 16 of 'x' (float32 of shape (60,)) had "
        "a load by another program of this launch, and nothing orders the two\n"
        "    tl.store(x + i, v, i < n)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: in program [1, 0, 0]\n"
        "note: the load in program [0, 0, 0] is at script.py:10:9\n"
        "    v = tl.load(x + i + 1, i < n)\n"
        "        ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "help: let one program alone touch the element, use an atomic, or a lock around both accesses\n"
        "found in launch 1, kernel shift, seen 2 times\n"
        "\n"
        "script.py:10:9: error: load out of bounds, lane [11]: element offset 60 from the start of 'x' "
        "(float32 of shape (60,)): 4 bytes past the end\n"
        "    v = tl.load(x + i + 1, i < n)\n"
        "        ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "note: in program [3, 0, 0]\n"
        "help: mask the lanes that are outside of the array\n"
        "found in launch 1, kernel shift\n"
        "\n"
        "2 findings in 2 launches of 2 kernels\n"
    )


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    assert check(tmp_path, FAULTY, "--json", str(file)).exit_code == 1
    report = json.loads(file.read_text(encoding="utf-8"))
    assert (report["launches"], report["kernels"]) == (2, 2)
    race, bounds = report["findings"]
    assert (race["kind"], bounds["kind"]) == ("race", "bounds")
    assert (race["line"], race["column"], race["program"], race["lane"]) == (11, 5, [1, 0, 0], [0])
    assert race["block"] == [16]
    assert race["array"] == {"name": "x", "dtype": "float32", "shape": [60], "offset": 16}
    assert race["earlier"] == {
        "action": "load",
        "file": str(tmp_path / "script.py"),
        "line": 10,
        "column": 9,
        "program": [0, 0, 0],
    }
    assert bounds["array"]["offset"] == 60


def test_what_was_found_is_said_when_the_script_fails(tmp_path: Path) -> None:
    result = check(tmp_path, FAULTY + "raise ValueError('oh')\n")
    assert result.exit_code == 1
    assert "2 findings" in result.stdout
    assert "ValueError: oh" in result.stderr


def test_arrays_of_numpy_empty(tmp_path: Path) -> None:
    text = KERNELS.replace("np.arange(60, dtype=np.float32)", "np.empty(60, np.float32)")
    text += "shift[1](x, 59, BLOCK=64)\n"
    assert check(tmp_path, text, "--no-nan").exit_code == 0
    watched = check(tmp_path, text, "--no-nan", "--watch-empty")
    assert watched.exit_code == 1
    assert "load of what nobody has written, lane [0]: element offset 1 of 'x'" in watched.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("x = 1\n", [], "launched no kernel"),
        (CLEAN, ["--device", "trn9"], "there is no device 'trn9'"),
        (CLEAN, ["--json", "/no/such/directory/f.json"], "cannot write /no/such/directory/f.json"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, arguments: list[str], said: str) -> None:
    result = check(tmp_path, text, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr

"""`blocklang bench` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import benchmarks.suite
import blocklang
from benchmarks.catalogue import all_names
from benchmarks.peers import absence_of
from blocklang.cli import main


def bench(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, ["bench", *arguments], prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


QUICK = ("--small", "--seconds", "0", "--threads", "1")


def test_list_names_everything() -> None:
    words = bench("--list").stdout.split()
    assert set(all_names()) <= set(words)
    assert {"rows:", "fresh:", "peers:", "numpy", "jax"} <= set(words)


def test_a_run_writes_json_and_markdown_and_appends(tmp_path: Path) -> None:
    data, text = tmp_path / "bench.json", tmp_path / "bench.md"
    files = ("--json", str(data), "--markdown", str(text))
    bench("rmsnorm", "launch-empty", "--peers", "numpy", *QUICK, *files)
    rows = json.loads(data.read_text())["results"]
    assert [row["workload"] for row in rows] == ["rmsnorm", "launch-empty"]
    assert list(rows[0]["timings"]) == ["blocklang", "numpy"]
    assert all(
        timing["times"] and not timing["failure"] for row in rows for timing in row["timings"].values()
    )

    bench("argmax", "--peers", "numpy", *QUICK, *files, "--append")
    rows = json.loads(data.read_text())["results"]
    assert [row["workload"] for row in rows] == ["rmsnorm", "argmax", "launch-empty"]
    assert "`argmax`" in text.read_text()
    assert text.read_text().count("    blocklang bench ") == 2


def test_an_absent_peer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        benchmarks.suite, "absence_of", lambda peer: "not installed" if peer == "torch" else absence_of(peer)
    )
    text = bench("launch-add", "--peers", "numpy,torch", *QUICK).stdout
    assert "Absent: PyTorch (not installed)." in text
    assert "| launch, 3 arrays of 1 Ki (`launch-add`) |" in text


def test_fresh_processes() -> None:
    text = bench("import", "--peers", "numpy", *QUICK).stdout
    assert "| import (`import`) |" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("softmaxx",), "there is no workload 'softmaxx'"),
        (("softmaxx",), "did you mean softmax?"),
        (("softmaxx",), "attention-4096-causal"),
        (("--peers", "numpy,cupy"), "there is no peer 'cupy'"),
        (("--peers", "numpy,cupy"), "The peers: blocklang, numpy, torch, numba, jax, c"),
        (("--threads", "0"), "expected numbers with commas"),
        (("--threads", "one"), "expected numbers with commas"),
        (("--seconds", "-1"), "not in the range"),
        (("--append",), "--append needs a file"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], expected: str) -> None:
    assert expected in bench(*arguments, status=2).output


def test_append_to_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    output = bench("rmsnorm", *QUICK, "--json", str(other), "--append", status=2).output
    assert "is no report of this command" in output


def test_an_installed_wheel_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(blocklang, "__file__", str(tmp_path / "blocklang" / "__init__.py"))
    output = bench("--list", status=2).output
    assert "this installation has no benchmarks" in output
    assert "pip install -e '.[bench]'" in output

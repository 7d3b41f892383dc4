"""`blocklang whatif` as a user types it: its table, its JSON, and what each mistake is answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blocklang.cli import main

SCRIPTS = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def in_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCRIPTS)


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["whatif", *arguments], prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


SWEEP = (
    *("too_big.py", "--device", "trn2"),
    *("--vary", "memory.psum.bytes=2MiB,8MiB", "--vary", "dma.engines=8,16"),
)


def test_a_sweep_says_where_a_kernel_stops_to_fit(golden: Callable[[str, str], None]) -> None:
    result = invoke(*SWEEP)
    assert result.exit_code == 0, result.stderr
    golden("whatif_too_big.txt", result.stdout)


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    assert invoke(*SWEEP, "--json", str(file)).exit_code == 0
    report = json.loads(file.read_text(encoding="utf-8"))
    assert (report["device"], report["script"]) == ("trn2", "too_big.py")
    first, *_, last = report["points"]
    assert first["changes"] == {"memory.psum.bytes": "2MiB", "dma.engines": "8"}
    assert first["time_us"] is None
    assert first["misfits"][0]["kernel"] == "product"
    assert last["time_us"] > 0
    assert last["misfits"] == []


def test_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="a plot needs matplotlib, which the extra `bench` installs")
    file = tmp_path / "sweep.svg"
    assert invoke(*SWEEP, "--plot", str(file)).exit_code == 0
    assert "<svg" in file.read_text(encoding="utf-8")


MISTAKES = {
    "form": ("one.py", "--device", "trn2", "--vary", "dma.engines"),
    "key": ("one.py", "--device", "trn2", "--vary", "dma.motors=4"),
    "space": ("one.py", "--device", "trn2", "--vary", "memory.l1.bytes=1MiB"),
    "value": ("one.py", "--device", "trn2", "--vary", "dma.start=fast"),
    "device": ("one.py", "--device", "trn4", "--vary", "dma.engines=4"),
    "no_launch": ("never.py", "--device", "trn2", "--vary", "dma.engines=4"),
    "json": (*SWEEP, "--json", "no/such/directory.json"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(name: str, golden: Callable[[str, str], None]) -> None:
    result = invoke(*MISTAKES[name])
    assert result.exit_code in (1, 2)
    golden(f"whatif_mistake_{name}.txt", f"{result.stderr}exit status {result.exit_code}\n")

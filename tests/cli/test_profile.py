"""`blocklang profile` as a user types it: its report, its files, and what each mistake is answered."""

from __future__ import annotations

import json
import os
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
    result = CliRunner().invoke(main, ["profile", *arguments], prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_report(golden: Callable[[str, str], None]) -> None:
    result = invoke("one.py", "--device", "trn2")
    assert result.exit_code == 0, result.stderr
    golden("profile_one.txt", result.stdout)


def test_several_launches(golden: Callable[[str, str], None]) -> None:
    result = invoke("several.py", "--device", "h100")
    assert result.exit_code == 0, result.stderr
    golden("profile_several.txt", result.stdout)


def test_what_the_script_prints_stays_apart() -> None:
    result = invoke("one.py", "--device", "trn2")
    assert "not reached under --from-run" in result.stderr  # here it is: the whole script runs
    assert "not reached" not in result.stdout


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    assert invoke("one.py", "100", "--device", "trn2", "--json", str(file)).exit_code == 0
    report = json.loads(file.read_text(encoding="utf-8"))
    assert report["device"] == "trn2"
    assert report["memory"]["global"] == {
        "bytes_read": 800,
        "bytes_written": 400,
        "peak_bytes": None,
        "capacity_bytes": 96 << 30,
    }
    assert report["memory"]["scratch"]["peak_bytes"] == 3 * 16 * 8 * 128  # three blocks, 16 places of 8 bytes
    assert report["dma"] == {"bytes": 1200, "transfers": 3}
    (line,) = report["lines"]
    assert line["file"] == str(SCRIPTS / "one.py")
    assert line["line"] == 13
    assert line["text"].startswith("tl.store(out + offsets,")
    assert line["memory"] == {"global": {"bytes_read": 800, "bytes_written": 400}}
    assert line["time_us"] == pytest.approx(report["time_us"])
    (launch,) = report["launches"]
    assert (launch["kernel"], launch["grid"], launch["times"]) == ("add", [1, 1, 1], 1)
    assert launch["memory"] == report["memory"]


def test_a_device_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ntitle = "a chip that does not exist"\n'
        '[memory.global]\nhardware = "DRAM"\nbytes = { value = "1 GiB", source = "invented" }\n'
        '[memory.scratch]\nhardware = "SRAM"\nbytes = { value = "64 KiB", source = "invented" }\n',
        encoding="utf-8",
    )
    result = invoke("one.py", "--device", str(file))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("mine: a chip that does not exist\n")
    assert "accumulator" not in result.stdout
    refused = invoke("too_big.py", "--device", str(file))
    assert refused.exit_code == 1
    assert "product does not fit mine: scratch (SRAM) holds 64 KiB, and 12 MiB are in use" in refused.stderr


def test_page_and_trace(tmp_path: Path) -> None:
    page, trace, figures = (tmp_path / name for name in ("page", "trace", "figures"))
    options = ("--html", str(page), "--trace", str(trace), "--json", str(figures))
    result = invoke("one.py", "100", "--device", "trn2", *options)
    assert result.exit_code == 0, result.stderr
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    names = {event["name"] for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]}
    assert {"process_name", "thread_name", "add", "load", "store"} <= names
    assert json.loads(figures.read_text(encoding="utf-8"))["device"] == "trn2"


MISTAKES = {
    "capacity": ("too_big.py", "--device", "trn2"),
    "device": ("one.py", "--device", "trn4"),
    "device_file": ("one.py", "--device", "nowhere.toml"),
    "script": ("oen.py", "--device", "trn2"),
    "no_launch": ("never.py", "--device", "trn2"),
    "syntax": ("syntax.py", "--device", "trn2"),
    "json": ("one.py", "--device", "trn2", "--json", "no/such/directory.json"),
    "html": ("one.py", "--device", "trn2", "--html", "no/such/directory.html"),
    "trace": ("one.py", "--device", "trn2", "--trace", "no/such/directory.json"),
    "html_directory": ("one.py", "--device", "trn2", "--html", "."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(name: str, golden: Callable[[str, str], None]) -> None:
    result = invoke(*MISTAKES[name])
    assert result.exit_code in (1, 2)
    answer = result.stderr.replace(str(SCRIPTS), "SCRIPTS").replace(os.sep, "/")
    golden(f"profile_mistake_{name}.txt", f"{answer}exit status {result.exit_code}\n")


def test_a_device_is_required() -> None:
    result = invoke("one.py")
    assert result.exit_code == 2
    assert "Missing option '--device'" in result.stderr

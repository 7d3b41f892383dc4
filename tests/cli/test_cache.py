"""`blocklang cache`: what it says, what it removes, and what it answers when it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blocklang.cache.entries import Entry
from blocklang.cache.store import named_store
from blocklang.cli import main
from blocklang.tune import winners


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BLOCKLANG_CACHE_SIZE", "1M")
    monkeypatch.delenv("BLOCKLANG_CACHE", raising=False)
    return tmp_path / "cache"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cache", *arguments], prog_name="blocklang")


def facts() -> dict[str, str]:
    result = invoke("info")
    assert result.exit_code == 0, result.output
    return {line[:15].strip(): line[15:] for line in result.output.splitlines()}


def test_an_empty_cache_is_described(directory: Path) -> None:
    assert facts() == {
        "directory": str(directory),
        "kernels": "in use",
        "entries": "0",
        "size": "0 bytes of at most 1 MiB",
        "tuning results": "0",
    }
    assert invoke("clear").output == "removed 0 kernels (0 bytes) and 0 tuning results\n"
    assert not directory.exists()


def test_entries_are_counted_and_removed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in "abc":
        named_store().keep(key, Entry({}, bytes(1000)))
    winners.store().keep("a", Entry({"rows": []}, b""))
    found = facts()
    assert (found["entries"], found["tuning results"]) == ("3", "1")
    assert found["size"].endswith("KiB of at most 1 MiB")
    assert invoke("clear").output.startswith("removed 3 kernels (")
    assert facts()["entries"] == facts()["tuning results"] == "0"
    monkeypatch.setenv("BLOCKLANG_CACHE", "0")
    assert facts()["kernels"] == "switched off by BLOCKLANG_CACHE"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_directory_that_is_not_believed_is_named(directory: Path) -> None:
    named_store().keep("a", Entry({}, b""))
    (directory / "kernels").chmod(0o777)
    assert "chmod go-w" in facts()["problem"]


@pytest.mark.parametrize("command", ["info", "clear"])
def test_a_directory_that_cannot_be_read_is_an_error(
    directory: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def fail(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", fail)
    result = invoke(command)
    assert result.exit_code == 2
    assert "the cache: Permission denied" in result.output
    assert "help: set BLOCKLANG_CACHE_DIR" in result.output


def test_mistakes_in_the_command_line() -> None:
    assert invoke("shrink").exit_code == 2
    assert "info" in invoke("--help").output

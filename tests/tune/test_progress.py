"""The bar: on a terminal with rich, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from blocklang.tune.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _show() -> None:
    with progress_bar("tuning add") as advance:
        advance("compiled 1 of 2", 0.5)


def test_no_terminal_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    _show()
    assert capsys.readouterr() == ("", "")


def test_without_rich_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    _show()
    assert terminal.getvalue() == ""


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is an extra: pip install 'blocklang[tune]'")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    _show()
    assert "tuning add" in terminal.getvalue()

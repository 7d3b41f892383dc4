"""The log that explains recompilations."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.jit.recompiles import LOGGER_NAME
from tests.behaviour.rows import row
from tests.jit import recompiled_kernels as kernels

LOGGER = logging.getLogger(LOGGER_NAME)
X = np.arange(64, dtype=np.float32)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER.name)
    return caplog


def fresh() -> bl.JITFunction:
    kernel: bl.JITFunction = bl.jit(kernels.optional.fn)
    return kernel


def lines(said: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in said.records]


# What a second launch does otherwise, and what is said about it.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "one": ({"n": 1}, "argument 'n' is = 1 (before: i32)"),
    "divisible": ({"n": 16}, "argument 'n' is i32 divisible by 16 (before: i32)"),
    "wide": ({"n": 1 << 40}, "argument 'n' is i64 divisible by 16 (before: i32)"),
    "none": ({"y": None}, "argument 'y' is = None (before: ptr<f32> divisible by 16)"),
    "dtype": ({"x": X.astype(np.int32)}, "argument 'x' is ptr<i32>"),
    "alignment": ({"x": X[1:]}, "argument 'x' is ptr<f32> (before: ptr<f32> divisible by 16)"),
    "bool": ({"flag": 2}, "argument 'flag' is i32 (before: i1)"),
    "constexpr": ({"BLOCK": 16}, "argument 'BLOCK' is = 16 (before: = 8)"),
    "debug": ({"debug": True}, "debug=True (before: False)"),
    "nan": ({"debug": "nan"}, "debug=True (before: False); nan=True (before: False)"),
    "fusion": ({"enable_fp_fusion": True}, "enable_fp_fusion=True (before: False)"),
    "in place": ({"out": X}, "arrays same (before: disjoint)"),
}


def arguments(**changes: Any) -> dict[str, Any]:
    given = {"x": X, "y": X, "out": np.zeros(64, np.float32), "n": 5, "flag": True, "BLOCK": 8}
    return {**given, **changes}


@pytest.mark.parametrize("change", CHANGES)
@row("The front end", "argument equal to 1, None, bool")
def test_a_recompilation_is_explained(change: str, said: pytest.LogCaptureFixture) -> None:
    """Each version says what differs from the one before; a launch that finds its version says nothing."""
    changes, reason = CHANGES[change]
    kernel = fresh()
    kernel[1](**arguments())
    kernel[1](**arguments(n=6))
    kernel[1](**arguments(**changes))
    kernel[1](**arguments(**changes))
    first, second = lines(said)
    assert first == "optional: version 1: the first"
    assert second.startswith(f"optional: version 2: {reason}")


@row("The front end", "globals and closures")
def test_a_changed_global_is_named(said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A global that has changed since is named as the reason."""
    kernel = fresh()
    kernel[1](**arguments())
    monkeypatch.setattr(kernels, "SCALE", 3)
    kernel[1](**arguments())
    assert lines(said)[1:] == ["optional: version 2: SCALE outside of the kernel has changed"]


def test_the_nearest_version_is_compared_with(said: pytest.LogCaptureFixture) -> None:
    kernel = fresh()
    kernel[1](**arguments())
    kernel[1](**arguments(n=1, y=None, BLOCK=16))
    kernel[1](**arguments(n=1))
    assert lines(said)[2] == "optional: version 3: argument 'n' is = 1 (before: i32)"


def test_the_environment_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LOGGER, "handlers", list(LOGGER.handlers))
    monkeypatch.setattr(LOGGER, "level", LOGGER.level)
    monkeypatch.setenv("BLOCKLANG_LOG", "other, recompiles")
    try:
        fresh()[1](**arguments())
        fresh()[1](**arguments(n=1))
        assert capsys.readouterr().err == 2 * "blocklang: optional: version 1: the first\n"
    finally:
        monkeypatch.undo()
        LOGGER.setLevel(logging.NOTSET)  # forgets what it has found out about its level
    fresh()[1](**arguments())
    assert capsys.readouterr().err == ""

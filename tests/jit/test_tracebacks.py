"""What a person sees of a mistake: the own line, and the message."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl


def _shapes(out: Any, n: Any) -> None:
    tl.store(out + tl.arange(0, 8), tl.arange(0, 5))


@pytest.mark.parametrize("interpret", [False, True])
def test_few_frames_are_ours(interpret: bool) -> None:
    kernel = bl.jit(interpret=interpret)(_shapes)
    with pytest.raises(bl.CompilationError) as caught:
        kernel[1](np.zeros(8, np.float32), 8)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert len([f for f in frames if "blocklang" in f.filename and "tests" not in f.filename]) <= 3
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_all_frames_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_TRACEBACK", "1")
    with pytest.raises(bl.CompilationError) as caught:
        bl.jit(_shapes)[1](np.zeros(8, np.float32), 8)
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 5


@pytest.mark.parametrize("word", ["0", "", "false", "No", "off"])
def test_interpreter_mode_is_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_INTERPRET", word)
    assert not bl.jit(_shapes).interpret


def test_a_near_name_is_offered() -> None:
    with pytest.raises(bl.LaunchError, match="did you mean 'out'"):
        bl.jit(_shapes)[1](outt=np.zeros(8, np.float32), n=8)

"""Interpreter mode: what the compiler refuses is not run, and what helps to look into a run is."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.frontend.building import define


def interpreted(text: str, **globals: Any) -> bl.JITFunction:
    return bl.jit(interpret=True)(define(text, "kernel", **globals))


def test_nothing_runs_of_a_kernel_that_is_refused() -> None:
    kernel = interpreted("def kernel(out, n):\n    tl.store(out, 1)\n    del n\n")
    out = np.zeros(1, np.int32)
    with pytest.raises(bl.UnsupportedLanguageConstruct, match="`del`"):
        kernel[1](out, 2)
    assert out[0] == 0


def test_a_branch_that_does_not_run_is_checked_too() -> None:
    kernel = interpreted("def kernel(out, n):\n    if n > 9:\n        out = 1.0\n    tl.store(out, 1)\n")
    with pytest.raises(bl.InterpreterError, match="`out` is"):
        kernel[1](np.zeros(1, np.int32), 2)


def test_print_and_assert_run(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = interpreted(
        "def kernel(out, n):\n    tl.static_print('once', n.dtype)\n    assert n > 1\n    print(n)\n"
    )
    kernel[1](np.zeros(1, np.int32), 2)
    assert capsys.readouterr().out.count("once") == 1


def test_breakpoint_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    kernel = interpreted("def kernel(out):\n    breakpoint()\n    tl.store(out, 1)\n")
    kernel[(3,)](np.zeros(1, np.int32))
    assert len(stops) == 3


def test_endless_recursion_is_refused_by_name() -> None:
    helper = bl.jit(define("def helper(n):\n    return helper(n - 1) if n > 0 else n\n", "helper"))
    helper.fn.__globals__["helper"] = helper
    kernel = interpreted("def kernel(out, n):\n    tl.store(out, helper(n))\n", helper=helper)
    with pytest.raises(bl.InterpreterError, match="the calls of `helper` do not end"):
        kernel[1](np.zeros(1, np.int32), 3)


_WRONG = {
    "CompilationError": "def kernel(out):\n    tl.store(out, undefined)\n",
    "UnsupportedLanguageConstruct": "def kernel(out):\n    del out\n",
    "CompileTimeAssertionFailure": "def kernel(out):\n    tl.static_assert(1 == 2, 'never')\n",
}


def _fail(kind: str) -> None:
    bl.jit(define(_WRONG[kind], "kernel"))[1](np.zeros(1, np.int32))


@pytest.mark.parametrize("kind", _WRONG)
def test_errors_come_back_from_another_process(kind: str) -> None:
    with pytest.raises(bl.CompilationError) as here:
        _fail(kind)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.raises(bl.CompilationError) as there:
        pool.submit(_fail, kind).result()
    for error in (here.value, there.value):
        assert type(error).__name__ == kind
        assert isinstance(error, bl.CompilationError)
    assert there.value.error_message == here.value.error_message
    assert there.value.help == here.value.help
    assert there.value.location is not None
    assert here.value.location is not None
    assert there.value.location.line == here.value.location.line
    assert there.value.source == here.value.source


def test_a_changed_global_pickles() -> None:
    import pickle

    error = bl.ChangedGlobalError("G has changed", help="pass it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is bl.ChangedGlobalError
    assert again.help == "pass it"


def test_values_of_the_host_are_plain_in_python_functions() -> None:
    seen: list[Any] = []

    @bl.constexpr_function
    def look(*values: Any) -> int:
        seen.extend(values)
        return 7

    for interpret in (False, True):
        seen.clear()
        lines = ["X: tl.constexpr = look(N, (N, tl.int8), 'a')", "tl.store(out, X)"]
        text = "\n    ".join(["def kernel(out, N: tl.constexpr):", *lines]) + "\n"
        kernel = bl.jit(interpret=interpret)(define(text, "kernel", look=look))
        out = np.zeros(1, np.int32)
        kernel[1](out, N=3)
        assert out[0] == 7
        assert seen[:3] == [3, (3, tl.int8), "a"]
        assert type(seen[0]) is int

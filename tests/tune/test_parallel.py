"""Compiling configs in other processes: the same code, from any script, whatever becomes of the processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.jit import apart, compile_worker
from blocklang.jit.function import Uncompiled
from tests.tune import kernels

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = (4, 8, 16, 32, 64, 128)


def fresh(name: str = "in_place", **options: Any) -> Any:
    """A kernel with nothing compiled."""
    return bl.jit(**options)(getattr(kernels, name).fn)


def wanted(kernel: Any, blocks: tuple[int, ...] = BLOCKS) -> list[Uncompiled]:
    return [kernel.uncompiled(np.zeros(100, np.float32), 100, BLOCK=block) for block in blocks]


@pytest.fixture(autouse=True)
def pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let helpers start, however little there is to do."""
    monkeypatch.setattr(apart, "PAYS_FROM", 0.0)
    monkeypatch.setattr(apart, "helper_limit", lambda: 2)


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process compile two kernels, and leave the others to helpers as long as they are there."""
    compile_here, count = apart._compile_here, iter(range(100))

    def wait(item: Uncompiled) -> None:
        if next(count) >= 2:
            for _ in range(1000):
                if all(not helper._thread.is_alive() or helper.is_busy for helper in HELPERS):
                    break
                time.sleep(0.005)
        compile_here(item)

    monkeypatch.setattr(apart, "_compile_here", wait)


HELPERS: list[apart._Helper] = []


@pytest.fixture(autouse=True)
def known_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    HELPERS.clear()

    class Known(apart._Helper):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            HELPERS.append(self)

    monkeypatch.setattr(apart, "_Helper", Known)


def results(items: list[Uncompiled]) -> list[bytes]:
    """The code of each, which must be compiled by now."""
    found = []
    for item in items:
        assert item.specialisation.alias in item.version.executables
        found.append(item.version.executables[item.specialisation.alias].compiled.object_code)
    return found


@pytest.mark.parametrize("name", ["in_place", "atomic"])
def test_helpers_make_the_same_code(name: str, slowly: None) -> None:
    here = wanted(fresh(name))
    for item in here:
        item.compile()
    apart_ = wanted(fresh(name))
    assert apart.compile_all(apart_) > 0
    assert results(apart_) == results(here)
    assert all(helper._process is None or helper._process.poll() is not None for helper in HELPERS)
    kernel, x = apart_[-1].function, np.zeros(100, np.float32)
    kernel[(1,)](x, 100, BLOCK=128)
    assert x.tolist() == [1.0] * 100 or name == "atomic"


def _never(*_: Any) -> Any:
    raise OSError("no more processes")


def _dies(*_: Any) -> Any:
    return subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _babbles(*_: Any) -> Any:
    text = "import sys; sys.stdout.write('hello' * 1000)"
    return subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("start", [_never, _dies, _babbles])
def test_processes_that_do_not_work_are_done_without(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Any], slowly: None
) -> None:
    monkeypatch.setattr(apart, "_start", start)
    items = wanted(fresh())
    assert apart.compile_all(items) == 0
    assert len(results(items)) == len(BLOCKS)


@pytest.mark.parametrize("answer", ["", "torn", "dead"])
def test_answers_that_are_none_are_compiled_here(
    monkeypatch: pytest.MonkeyPatch, answer: str, slowly: None
) -> None:
    def read(file: Any) -> bytes | None:
        content = compile_worker.read_frame(file)
        if content is not None and len(content) > 64:  # not the first frame
            return {"": b"", "torn": content[:-1], "dead": None}[answer]
        return content

    monkeypatch.setattr(apart, "read_frame", read)
    items = wanted(fresh())
    assert apart.compile_all(items) == 0
    assert len(results(items)) == len(BLOCKS)


def test_a_stuck_process_is_ended(monkeypatch: pytest.MonkeyPatch, slowly: None) -> None:
    monkeypatch.setattr(apart, "PATIENCE_SECONDS", 0.1)

    def hang(item: Uncompiled, requests: Any, answers: Any) -> None:
        answers.read(1)  # until the process is ended

    monkeypatch.setattr(apart, "_ask", hang)
    items = wanted(fresh())
    assert apart.compile_all(items) == 0
    assert len(results(items)) == len(BLOCKS)


def test_what_says_places_is_compiled_here(slowly: None) -> None:
    items = wanted(fresh("breaks", debug=True))
    assert apart.compile_all(items) == 0
    assert len(results(items)) == len(BLOCKS)


def test_little_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not apart._pays([1.0], 100)
    assert not apart._pays([1.0, 0.1], 10)
    assert apart._pays([1.0, 0.5], 20)
    monkeypatch.setenv("BLOCKLANG_COMPILE_PROCESSES", "0")
    assert apart.helper_limit() == 0
    monkeypatch.setenv("BLOCKLANG_COMPILE_PROCESSES", "")
    monkeypatch.setattr(sys, "executable", "/opt/app/server")
    assert apart.helper_limit() == 0


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """Its lines run once; a file of its directory named as one of Python's does no harm."""
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    file = tmp_path / "script.py"
    file.write_text(
        "import sys; here = sys.path.pop(0)\n"
        "import numpy as np\n"
        "import blocklang as bl\n"
        "from blocklang.jit import apart\n"
        "from tests.tune import kernels\n"
        "sys.path.insert(0, here)\n"
        "apart.PAYS_FROM, apart.helper_limit = 0.0, lambda: 1\n"
        "print('once')\n"
        "configs = [bl.Config({'BLOCK': b}) for b in range(4, 30)]\n"
        "tuned = bl.autotune(configs, key=['n'])(kernels.in_place)\n"
        "x = np.zeros(100, np.float32)\n"
        "tuned[lambda meta: (bl.cdiv(100, meta['BLOCK']),)](x, 100)\n"
        "print((x == 1).all(), tuned.report.parallel > 0)\n"
    )
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(file)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["once", "True", "True"]

"""CPU levels: what they promise, which this machine runs, and what a wrong one is answered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.diagnostics import UsageError
from blocklang.target import (
    LEVELS,
    current_target,
    is_runnable,
    require_runnable,
    runnable_levels,
    target_for,
)

ROOT = Path(__file__).resolve().parents[2]


@bl.jit
def double(x, N: bl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(x + i, 2 * tl.load(x + i))


def test_levels_in_figures() -> None:
    facts = {
        level: (t.vector_bytes, t.vector_registers, t.has_fma, t.has_rounding, t.has_f16c)
        for level in LEVELS
        for t in (target_for(level),)
    }
    assert facts == {
        "x86-64": (16, 16, False, False, False),
        "x86-64-v2": (16, 16, False, True, False),
        "x86-64-v3": (32, 16, True, True, True),
        "x86-64-v4": (64, 32, True, True, True),
        "aarch64": (16, 32, True, True, True),
    }


def test_the_host_runs_its_own_code_and_the_lowest_level() -> None:
    assert is_runnable(target_for("host"))
    runnable = runnable_levels()
    assert runnable[0] in ("x86-64", "aarch64")
    assert [level for level in LEVELS if is_runnable(target_for(level))] == runnable


def test_a_level_without_its_features_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if "x86-64-v3" not in runnable_levels():
        pytest.skip("this machine runs no code for x86-64-v3, so none can be taken from it")
    features = {**llvm.get_host_cpu_features(), "fma": False, "avx512f": False}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    assert runnable_levels() == ["x86-64", "x86-64-v2"]
    with pytest.raises(UsageError, match="code for x86-64-v3 cannot run here: this CPU lacks fma") as caught:
        require_runnable(target_for("x86-64-v3"))
    assert caught.value.help == (
        "set BLOCKLANG_CPU to one of host, x86-64, x86-64-v2; `blocklang asm` writes code for every level"
    )


def test_code_of_another_machine_is_refused_at_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "x86-64" if runnable_levels() == ["aarch64"] else "aarch64"
    monkeypatch.setenv("BLOCKLANG_CPU", other)
    x = np.ones(8, np.float32)
    with pytest.raises(UsageError, match=f"code for {other} cannot run here: this machine is "):
        double[(1,)](x, N=8)
    assert (x == 1).all()
    monkeypatch.setenv("BLOCKLANG_CPU", runnable_levels()[0])
    double[(1,)](x, N=8)
    assert (x == 2).all()


def test_an_unknown_level_is_answered_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_CPU", "x86-64-v9")
    with pytest.raises(UsageError, match="unknown CPU level 'x86-64-v9'") as caught:
        current_target()
    assert caught.value.help == f"choose host or one of {', '.join(LEVELS)}"


def blocklang(level: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blocklang", *arguments],
        cwd=ROOT,
        env={**os.environ, "BLOCKLANG_CPU": level, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("level", "instruction"), [("aarch64", "fmla\tv"), ("x86-64-v4", "vfmadd"), ("x86-64-v2", "mulpd\t")]
)
def test_assembly_of_every_level_is_written(level: str, instruction: str) -> None:
    """The script runs on this machine, and its kernel is compiled for the level."""
    done = blocklang(level, "asm", "examples/softmax.py", "--from-run")
    assert done.returncode == 0, done.stderr
    assert instruction in done.stdout


def test_the_doctor_says_what_is_wrong() -> None:
    other = "x86-64" if runnable_levels() == ["aarch64"] else "aarch64"
    done = blocklang(other, "doctor")
    assert done.returncode == 1
    assert f"BLOCKLANG_CPU={other}" in done.stdout
    assert f"code for {other} cannot run here" in done.stdout
    assert "unset it, or choose one of " in done.stdout
    assert "Traceback" not in done.stdout

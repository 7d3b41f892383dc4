"""Every spelling is right, and none is slow for how it is spelled: judged by its code, not by a time."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.spellings import FAMILIES
from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.explain import Access, explain_kernel
from blocklang.ir.core import Kernel
from blocklang.jit import record_launches
from blocklang.target import target_for

ROOT = Path(__file__).resolve().parents[2]
SPELLINGS = [(family.name, name) for family in FAMILIES.values() for name in family.spellings]
LEVELS = ("x86-64-v3", "x86-64-v4")


@cache
def block_ir(family: str, name: str) -> Kernel:
    """The IR of the launch for the size that is timed."""
    with record_launches(lambda _: None) as launches:
        FAMILIES[family].spellings[name](FAMILIES[family].make(False))
    (launch,) = launches
    return launch.function.block_ir(launch.specialisation)


def fast_accesses(family: str, name: str, level: str) -> list[Access]:
    report = explain_kernel(block_ir(family, name), target_for(level))
    return [access for line in report.lines for access in line.accesses]


@pytest.mark.parametrize("family", FAMILIES)
def test_there_are_at_least_eight(family: str) -> None:
    assert len(FAMILIES[family].spellings) >= 8


@pytest.mark.parametrize(("family", "name"), SPELLINGS)
@pytest.mark.parametrize("small", [True, False])
def test_result(family: str, name: str, small: bool) -> None:
    """The result is that of float64 but for roundings, for a size that is odd in every extent too."""
    problem = FAMILIES[family].make(small)
    problem.check(FAMILIES[family].spellings[name](problem))


@pytest.mark.parametrize(("family", "name"), SPELLINGS)
@pytest.mark.parametrize("level", LEVELS)
def test_fast_version_moves_vectors(family: str, name: str, level: str) -> None:
    """Nothing is gathered, scattered or taken lane by lane, and no main loop has a mask. Attention multiplies
    with the transpose of K, which is taken element by element while it is packed.
    """
    accesses = fast_accesses(family, name, level)
    assert accesses
    for access in accesses:
        is_transposed = family == "attention" and access.array == "k_ptr" and access.form == "strided"
        assert access.is_vector or is_transposed, (access.array, access.form, access.why)
        assert not access.mask.startswith("asked"), (access.array, access.mask)


@pytest.mark.parametrize(("family", "name"), SPELLINGS)
def test_no_gather_in_the_code(family: str, name: str) -> None:
    """LLVM holds a gather or scatter only where a stride may turn out not to be 1, for the transpose of
    K, and in sums of the general version, which need their 32 lanes.
    """
    options = CompileOptions(target=target_for(LEVELS[0]))
    compiled = compile_kernel(block_ir(family, name), options=options)
    found = re.findall(r"@llvm\.masked\.(?:gather|scatter)", compiled.llvm_ir)
    is_general_sum = re.search(r"width=32, .*general=true", compiled.forms.placed)
    if not (name == "strides unknown" or family == "attention" or is_general_sum):
        assert not found


@pytest.mark.slow
def test_command() -> None:
    command = [sys.executable, "-m", "benchmarks.spellings", "softmax", "--turns", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "softmax: 12 spellings" in done.stdout
    assert "slowest / fastest:" in done.stdout


def test_unknown_family() -> None:
    command = [sys.executable, "-m", "benchmarks.spellings", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such family: nothing" in done.stderr

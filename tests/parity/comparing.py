"""Both sides run in processes of their own; their results are compared, case by case.

`python -m tests.parity [FAMILY ...]` runs every case and prints a table; the tests run a part of them. What
differs for a known reason is listed in `DEVIATIONS`, with the reason: Triton's interpreter computes some
things otherwise than Triton's compiler does, and some things are undefined there and defined here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.cases import ALL, FLOATS, FP8, INTEGERS, Case, source_of
from tests.parity.values import numpy_dtype

ROOT = Path(__file__).resolve().parents[2]
Result = tuple[str, bytes] | str  # dtype and bytes, or the error


@dataclass(frozen=True)
class Deviation:
    """A difference that is known: which cases have it, which way, and why."""

    applies: Callable[[Case], bool]
    verdicts: tuple[str, ...]
    reason: str


def _reads(case: Case, *dtypes: str) -> bool:
    return any(one.dtype in dtypes for one in case.inputs)


def _is_cast_to(case: Case, sources: tuple[str, ...], *targets: str) -> bool:
    named = [t for t in targets if case.name.endswith(f"_{t}")]
    return case.family == "casts" and bool(named) and case.inputs[0].dtype in sources


UNSIGNED = tuple(t for t in INTEGERS if t.startswith("u"))

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        lambda c: _is_cast_to(c, ("bool", *INTEGERS), "bfloat16"),
        ("value",),
        "Triton's interpreter takes an integer for the bits of a bfloat16",
    ),
    Deviation(
        lambda c: _is_cast_to(c, ("float16", "float32", "float64"), "bfloat16"),
        ("value",),
        "Triton's interpreter cuts a float's bits off where its compiler rounds to nearest even",
    ),
    Deviation(
        lambda c: _is_cast_to(c, (*FLOATS, *FP8), *UNSIGNED),
        ("value",),
        "a negative float has no unsigned value: undefined there, 0 here",
    ),
    Deviation(
        lambda c: (
            c.family in ("reductions", "promotion", "literals", "scans", "dot") and _reads(c, "bfloat16")
        ),
        ("value",),
        "Triton's interpreter computes with the bits of bfloat16 as integers",
    ),
    Deviation(
        lambda c: c.name.startswith(("add_bool_bool", "add_bool_True", "sub_bool_bool")),
        ("value",),
        "true + true is false, a sum of one bit; Triton's interpreter takes NumPy's, a logical or",
    ),
    Deviation(
        lambda c: c.name.startswith(("minimum_", "maximum_")) and _reads(c, *FLOATS),
        ("value",),
        "minimum and maximum ignore a NaN unless told otherwise; Triton's interpreter lets it win",
    ),
    Deviation(
        lambda c: c.name == "fma_float32",
        ("value",),
        "Triton's interpreter rounds the product of an fma",
    ),
    Deviation(
        lambda c: c.name == "umulhi_int32",
        ("value",),
        "umulhi reads its operands as unsigned; Triton's interpreter multiplies them as signed",
    ),
)


# How an error of ours must begin to be a refusal, and not a fault of the compiler.
REFUSALS = ("CompilationError:", "UnsupportedLanguageConstruct:", "LaunchError:")
UNEXPECTED = ("we fail", "we refuse", "dtype", "value")


def verdict(case: Case, theirs: Result, ours: Result) -> str:
    """How a case compares: "equal", "both refuse", "they refuse", or what is in `UNEXPECTED`."""
    if isinstance(theirs, str) or isinstance(ours, str):
        if isinstance(ours, str) and not ours.startswith(REFUSALS):
            return "we fail"
        if isinstance(theirs, str) and isinstance(ours, str):
            return "both refuse"
        return "they refuse" if isinstance(theirs, str) else "we refuse"
    if theirs[0] != ours[0]:
        return "dtype"
    a, b = (np.frombuffer(data, numpy_dtype(dtype)) for dtype, data in (theirs, ours))
    return "equal" if _close(a, b, case.ulp) else "value"


def _close(a: Any, b: Any, ulp: float) -> bool:
    if a.dtype.kind in "iub":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
        if ulp:
            spacing = np.spacing(np.abs(a)) if a.dtype in (np.float32, np.float64) else np.abs(wide_a) / 128
            same |= np.abs(wide_a - wide_b) <= ulp * spacing.astype(np.float64)
    return bool(same.all())


def deviation(case: Case, found: str) -> Deviation | None:
    """The known reason for a verdict, if there is one."""
    return next((d for d in DEVIATIONS if found in d.verdicts and d.applies(case)), None)


def run_both(cases: tuple[Case, ...], folder: Path) -> dict[str, tuple[Result, Result]]:
    """The results of both sides, per case; Triton's first."""
    names = folder / "names.txt"
    names.write_text("\n".join(case.name for case in cases))
    original = folder / "kernels_triton.py"
    original.write_text(source_of(cases, "triton", "triton.language"))
    own = folder / "kernels_blocklang.py"
    own.write_text(source_of(cases, "blocklang.triton", "blocklang.triton.language"))
    theirs, ours = folder / "triton.pickle", folder / "blocklang.pickle"
    _run("triton", original, names, theirs, interpret=True)
    _run("blocklang", own, names, ours, theirs)
    first, second = (pickle.loads(path.read_bytes()) for path in (theirs, ours))
    return {case.name: (first[case.name], second[case.name]) for case in cases}


def _run(side: str, *paths: Path, interpret: bool = False) -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), PYTHONWARNINGS="ignore")
    environment.pop("TRITON_INTERPRET", None)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    runner = Path(__file__).with_name("runner.py")
    subprocess.run([sys.executable, runner, side, *map(str, paths)], env=environment, check=True)


def cases_of(families: tuple[str, ...]) -> tuple[Case, ...]:
    return tuple(case for case in ALL if not families or case.family in families)

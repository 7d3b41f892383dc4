"""The registry is whole and consistent; generated files are in sync with what generates them."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blocklang import maths
from blocklang.interpreter.numpy_steps import NumpySteps, evaluate
from blocklang.maths.__main__ import render
from blocklang.maths.registry import ALL, RECIPES
from blocklang.maths.steps import Steps
from tests.maths.native import LlvmSteps

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_function_has_both_dtypes_and_one_arity() -> None:
    arities = {(recipe.name, recipe.arity) for recipe in ALL}
    assert set(RECIPES) == {(name, dtype) for name, _ in arities for dtype in ("f32", "f64")}
    assert len(ALL) == len(RECIPES) == 2 * len(arities)


def test_stated_errors_keep_the_goals() -> None:
    """At most 1 ULP in f32 and 1.5 in f64; 1 / sqrt(x), two roundings by definition, has 1.5 in both. What
    NVIDIA's libdevice alone has may err as much as there: twice, or 7 ULP for gamma and Bessel functions.
    """
    hard = {"tgamma", "lgamma", "j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1"}
    twice = {"erfcx", "asinh", "acosh", "atanh", "erfinv", "erfcinv", "normcdf", "normcdfinv"}
    for recipe in ALL:
        goal = 1.5 if recipe.dtype == "f64" or recipe.name == "rsqrt" else 1.0
        if recipe.dtype == "f64":
            goal = 7.0 if recipe.name in hard else 3.0 if recipe.name in twice else goal
        assert recipe.max_ulp <= goal, recipe


def test_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match=r"pow takes 2 argument\(s\), 1 given"):
        RECIPES["pow", "f32"].apply(NumpySteps(), np.array(1.0, np.float32))


def test_unknown_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="float16"):
        evaluate("exp", np.array(1.0, np.float16))


def test_implementations_have_exactly_the_steps() -> None:
    def methods(cls: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")}

    steps = methods(Steps)
    assert methods(NumpySteps) == steps
    assert methods(LlvmSteps) >= steps


def test_room_imports_only_the_standard_library() -> None:
    for path in Path(maths.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                )
                for name in names:
                    top = name.split(".")[0]
                    assert top in sys.stdlib_module_names or name.startswith("blocklang.maths"), (path, name)


def test_document_is_in_sync() -> None:
    assert (ROOT / "docs" / "maths.md").read_text("utf-8") == render()


@pytest.mark.slow
def test_coefficients_are_in_sync() -> None:
    command = [sys.executable, str(ROOT / "tools" / "minimax.py")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert text == (ROOT / "blocklang" / "maths" / "coefficients.py").read_text("utf-8")


@pytest.mark.slow
def test_special_coefficients_are_in_sync() -> None:
    command = [sys.executable, "-m", "tools.special_functions"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert text == (ROOT / "blocklang" / "maths" / "special_coefficients.py").read_text("utf-8")

"""What newcomers' kernels and strict mode say, word for word; and that every mode says it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.diagnostics import CompilationError, UnsupportedLanguageConstruct
from blocklang.frontend.strict import STRICT
from tests.errors.frontend import kernels, strict_kernels


def functions_of(module: types.ModuleType) -> dict[str, Callable[..., Any]]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__
    }


WRONG = functions_of(kernels)
STRICTLY_WRONG = functions_of(strict_kernels)


def launch(function: Callable[..., Any], **options: Any) -> None:
    kernel = bl.jit(**options)(function)
    x = np.zeros(8, np.float32)
    kernel[1](x, np.zeros(8, np.int32), 3, 2.0, BLOCK=64)


def launch_strict(function: Callable[..., Any], **options: Any) -> None:
    kernel = bl.jit(**options)(function)
    kernel[1](np.zeros(8, np.float16), np.zeros(8, np.int32), 5, BLOCK=64)


def error_of(run: Callable[..., None], function: Callable[..., Any], **options: Any) -> CompilationError:
    with pytest.raises(CompilationError) as caught:
        run(function, **options)
    return caught.value


@pytest.mark.parametrize("name", WRONG)
def test_the_message(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", error_of(launch, WRONG[name]).render() + "\n")


@pytest.mark.parametrize("name", sorted(set(WRONG) - {"breakpoint_compiled"}))
def test_the_interpreter_says_the_same(name: str) -> None:
    compiled, interpreted = (error_of(launch, WRONG[name], interpret=i) for i in (False, True))
    assert compiled.render() == interpreted.render()
    assert isinstance(interpreted, (bl.InterpreterError, UnsupportedLanguageConstruct))


@pytest.mark.parametrize("name", STRICTLY_WRONG)
def test_the_message_of_strict_mode(name: str, golden: Callable[[str, str], None]) -> None:
    compiled, interpreted = (
        error_of(launch_strict, STRICTLY_WRONG[name], strict=True, interpret=i) for i in (False, True)
    )
    assert compiled.render() == interpreted.render()
    golden(f"strict_{name}.txt", compiled.render() + "\n")


@pytest.mark.parametrize("name", STRICTLY_WRONG)
@pytest.mark.parametrize("interpret", [False, True])
def test_a_usual_kernel_may_do_it(name: str, interpret: bool) -> None:
    launch_strict(STRICTLY_WRONG[name], interpret=interpret)


def test_every_rule_has_a_kernel() -> None:
    said = {error_of(launch_strict, f, strict=True).message for f in STRICTLY_WRONG.values()}
    for name, rule in STRICT.items():
        start = rule.text(*["?"] * 4).partition("?")[0]
        assert any(message.startswith(start) for message in said), name

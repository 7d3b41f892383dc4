"""What a kernel that cannot be compiled says, word for word: place, reason, caret, remedy."""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from typing import Any

import pytest

from blocklang.diagnostics import (
    CompilationError,
    CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct,
)
from tests.errors.compile import effect_kernels, kernels, shape_kernels
from tests.frontend.building import build

_HELPERS = {"plain"}
WRONG: dict[str, Callable[..., Any]] = {
    name: value
    for module in (kernels, shape_kernels, effect_kernels)
    for name, value in vars(module).items()
    if isinstance(value, types.FunctionType) and value.__module__ == module.__name__ and name not in _HELPERS
}


def error_of(function: Callable[..., Any]) -> CompilationError:
    with pytest.raises(CompilationError) as caught:
        build(function, "ptr<f32>", "ptr<i32>", "i32", "f32", BLOCK=64)
    return caught.value


@pytest.mark.parametrize("name", WRONG)
def test_the_message(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", error_of(WRONG[name]).render() + "\n")


@pytest.mark.parametrize("name", WRONG)
def test_the_place_is_in_the_users_file(name: str) -> None:
    error = error_of(WRONG[name])
    assert error.location is not None
    assert error.location.file == WRONG[name].__code__.co_filename
    assert error.location.line >= WRONG[name].__code__.co_firstlineno or error.notes


def test_errors_pickle_with_their_place() -> None:
    error = error_of(kernels.error_in_called_function)
    again = pickle.loads(pickle.dumps(error))
    assert again.render() == error.render()
    assert type(again) is type(error)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("try_statement", UnsupportedLanguageConstruct),
        ("failed_static_assert", CompileTimeAssertionFailure),
        ("failed_assert", CompileTimeAssertionFailure),
        ("carried_type", CompilationError),
    ],
)
def test_the_kind_of_error(name: str, kind: type[CompilationError]) -> None:
    assert type(error_of(WRONG[name])) is kind

"""Every operation has exactly one meaning."""

from __future__ import annotations

import pytest

import blocklang.interpreter  # noqa: F401 - registers the evaluators
from blocklang.interpreter.evaluation import EVALUATORS, evaluates
from blocklang.ir.declaration import OPERATIONS
from blocklang.ops.elementwise import Add


def test_every_operation_has_an_evaluator() -> None:
    missing = [name for name, cls in OPERATIONS.items() if not cls.is_terminator and cls not in EVALUATORS]
    assert not missing


def test_a_second_evaluator_is_refused() -> None:
    with pytest.raises(ValueError, match="add has two evaluators"):
        evaluates(Add)(lambda op, machine: None)

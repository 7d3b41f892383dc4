"""Scalar control flow is CPython's: random programs, run by Python and compiled."""

from __future__ import annotations

from random import Random

import pytest

import blocklang.language as tl
from blocklang.jit import jit
from tests.frontend.building import build, define, run
from tests.frontend.programs import program

_KERNEL = """
def kernel(out, a, b, c, s):
    x, y, z = program(a, b, c, s)
    tl.store(out, x)
    tl.store(out + 1, y)
    tl.store(out + 2, z)
"""
_BATCH = 25


def check(seed: int) -> None:
    """A program, compiled once, gives for some arguments what Python gives."""
    text = program(seed)
    python = define(text, "program", static_range=range)
    compiled = jit(define(text, "program", static_range=tl.static_range))
    kernel = build(define(_KERNEL, "kernel", program=compiled), "ptr<i32>", "i32", "i32", "i32", "i32")
    random = Random(seed)
    for _ in range(3):
        values = (*(random.randint(-4, 6) for _ in range(3)), random.choice([-2, -1, 1, 3]))
        expected = [int(v) for v in python(*values)]
        assert run(kernel, 3, *values).tolist() == expected, f"seed {seed}, {values}\n{text}\n{kernel}"


@pytest.mark.parametrize("batch", range(12))
def test_a_program_means_what_python_means(batch: int) -> None:
    for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
        check(seed)

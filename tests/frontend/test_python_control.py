"""Scalar control flow is CPython's: random programs, run by Python, compiled, and interpreted."""

from __future__ import annotations

from random import Random

import numpy as np
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


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("batch", range(4))
def test_a_launch_means_what_python_means(batch: int, interpret: bool) -> None:
    """The same through `kernel[grid](...)`: machine code, and the user's own lines."""
    for seed in range(1000 + 15 * batch, 1000 + 15 * (batch + 1)):
        text = program(seed)
        python = define(text, "program", static_range=range)
        called = jit(define(text, "program", static_range=tl.static_range))
        kernel = jit(interpret=interpret)(define(_KERNEL, "kernel", program=called))
        random = Random(seed)
        for _ in range(3):
            values = (*(random.randint(-4, 6) for _ in range(3)), random.choice([-2, -1, 1, 3]))
            out = np.zeros(3, np.int32)
            kernel[1](out, *values)
            expected = [int(v) for v in python(*values)]
            assert out.tolist() == expected, f"seed {seed}, {values}\n{text}"

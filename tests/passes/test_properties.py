"""Every classical pass keeps what random kernels compute, and what it leaves verifies and parses back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ir.printer import print_kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.verifier import verify
from blocklang.passes.canonicalise import canonicalise
from blocklang.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from blocklang.passes.eliminate_dead_code import eliminate_dead_code
from blocklang.passes.hoist_loop_invariants import hoist_loop_invariants
from blocklang.passes.insert_checks import insert_checks
from blocklang.passes.split_pointers import split_pointers
from tests.passes.cases import Pass
from tests.passes.random_kernels import assert_same_bits, outputs_of, random_kernels
from tests.passes.random_walks import outputs_of_walk, random_walks

PASSES = (canonicalise, eliminate_common_subexpressions, eliminate_dead_code, hoist_loop_invariants)


def check(kernel: Kernel, *passes: Pass) -> None:
    verify(kernel)
    expected = outputs_of(kernel)
    changed = clone_kernel(kernel)
    for run in passes:
        run(changed)
        verify(changed)
    text = print_kernel(changed)
    assert print_kernel(parse_kernel(text)) == text
    assert_same_bits(expected, outputs_of(changed))


@pytest.mark.parametrize("run", PASSES, ids=lambda run: str(run.__name__))
@given(kernel=random_kernels())
@settings(max_examples=40)
def test_a_pass_keeps_the_answer(run: Pass, kernel: Kernel) -> None:
    check(kernel, run)


@given(kernel=random_kernels())
@settings(max_examples=40)
def test_all_passes_keep_the_answer(kernel: Kernel) -> None:
    check(kernel, *PASSES, *PASSES)


@given(kernel=random_kernels())
@settings(max_examples=20)
def test_a_pass_that_runs_again_changes_nothing(kernel: Kernel) -> None:
    for run in PASSES:
        run(kernel)
        once = print_kernel(kernel)
        run(kernel)
        assert print_kernel(kernel) == once


@given(kernel=random_walks())
@settings(max_examples=40)
def test_splitting_pointers_keeps_the_answer(kernel: Kernel) -> None:
    verify(kernel)
    expected = outputs_of_walk(kernel)
    for run in (split_pointers, *PASSES):
        run(kernel)
        verify(kernel)
        assert_same_bits(expected, outputs_of_walk(kernel))


@given(kernel=random_kernels())
@settings(max_examples=40)
def test_checks_keep_the_answer(kernel: Kernel) -> None:
    """A kernel that stays in its arrays does so without an alarm."""
    check(kernel, insert_checks)
    check(kernel, *PASSES, insert_checks, *PASSES)


@given(kernel=random_walks())
@settings(max_examples=40)
def test_checks_of_walking_pointers_keep_the_answer(kernel: Kernel) -> None:
    verify(kernel)
    expected = outputs_of_walk(kernel)
    for run in (split_pointers, insert_checks, *PASSES):
        run(kernel)
        verify(kernel)
        assert_same_bits(expected, outputs_of_walk(kernel))

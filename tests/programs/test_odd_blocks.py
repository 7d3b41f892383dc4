"""The same programs with blocks of any extent, as blocklang allows them: modes agree all the same."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
from tests.programs import (
    test_cross_entropy,
    test_delta_rule_chunks,
    test_embedding,
    test_linear_attention,
    test_paged_attention,
    test_radix_sort,
    test_recurrences,
)
from tests.programs.running import close, compiled, normal


@pytest.fixture
def agree(monkeypatch):
    """`agree(module, launch)`: the module's kernels as blocklang's own, compiled and interpreted."""

    def run(module, launch):
        for name, value in list(vars(module).items()):
            if isinstance(value, triton.JITFunction):
                monkeypatch.setattr(module, name, bl.jit(value.fn))
        first, second = launch(compiled), launch(lambda kernel: bl.jit(interpret=True)(kernel.fn))
        for one, other in zip(first, second, strict=True):
            assert one.tobytes() == other.tobytes()
        return first

    return run


@pytest.mark.parametrize("block", [3, 37])
def test_cross_entropy_in_chunks(agree, block):
    x, y = test_cross_entropy.case(1, 4, 50)
    found = agree(
        test_cross_entropy,
        lambda mode: test_cross_entropy.launch(mode, x, y, 0.1, 1e-3, "mean", block, softcap=3.0),
    )
    expected = test_cross_entropy.reference(x, y, 0.1, 1e-3, "mean", softcap=3.0)
    for one, other in zip(found, expected, strict=True):
        close(one, other)


@pytest.mark.parametrize(
    ("size", "blocks"),
    [((1, 41, 2, 5, 7), (11, 3, 5)), ((1, 20, 1, 17, 3), (7, 17, 3)), ((2, 5, 1, 1, 1), (1, 1, 1))],
)
def test_attention_in_chunks(agree, size, blocks):
    arrays = test_linear_attention.case(*size)
    found = agree(
        test_linear_attention, lambda mode: test_linear_attention.chunked(mode, *arrays, 0.3, *blocks)
    )
    o, ht = test_linear_attention.reference(*arrays, 0.3)
    close(found[0], o)
    close(found[1], ht)


def test_delta_rule_with_odd_halves(agree):
    arrays = test_delta_rule_chunks.case(1, 50, 1, 12, 10, "fp32")
    found = agree(test_delta_rule_chunks, lambda mode: test_delta_rule_chunks.launch(mode, *arrays, 7, 3))
    test_delta_rule_chunks.check(*arrays, "fp32", found)


@pytest.mark.parametrize("blocks", [(7, 3), (45, 5)])
def test_scans_of_pairs(agree, blocks):
    arrays = test_recurrences.scan_case(2, 45, 5, "bf16")
    found = agree(test_recurrences, lambda mode: test_recurrences.scan_launch(mode, *arrays, *blocks))
    for one, other in zip(found, test_recurrences.scan_reference(*arrays), strict=True):
        close(one, other)


def test_pages(agree):
    arrays = test_paged_attention.case([1, 9, 30], 6, 2, 12, 4, "fp32")
    (found,) = agree(test_paged_attention, lambda mode: test_paged_attention.launch(mode, *arrays, 2, 7, 5.0))
    close(found, test_paged_attention.reference(*arrays, 5.0))


@pytest.mark.parametrize("one_sweep", [False, True])
def test_radix_sort_of_odd_blocks(agree, one_sweep):
    x = test_radix_sort.keys(70, np.float32)
    found = agree(test_radix_sort, lambda mode: test_radix_sort.radix_sort(mode, x, False, 33, one_sweep))
    test_radix_sort.check(x, found, False)


def test_embedding_of_odd_blocks(agree):
    table, indices = normal(1, 5, 9), np.random.default_rng(2).integers(0, 5, 21)
    grad = np.random.default_rng(3).integers(-3, 3, (21, 9)).astype(np.float32)
    found = agree(
        test_embedding,
        lambda mode: test_embedding.launch(mode, table, indices, grad, np.float32, None, 5, 7),
    )
    test_embedding.check(table, indices, grad, None, "fp32", found)

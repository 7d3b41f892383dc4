"""Where the words of elements lie, and which elements of watched arrays count as written."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from blocklang.ops.faults import LOADS_OF, MOST_PROGRAMS, STORES_OF
from blocklang.runtime.arrays import describe_array
from blocklang.runtime.watching import uninitialised, watched_behind
from blocklang.runtime.words import WORD_BYTES, WordMemory


def places(memory: WordMemory, **arrays: np.ndarray) -> dict[str, int]:
    described = {name: describe_array(array) for name, array in arrays.items()}
    return memory.addresses({name: (STORES_OF, name) for name in arrays}, described)


def test_arrays_that_overlap_share_words() -> None:
    x = np.zeros(100, np.float32)
    found = places(WordMemory(), a=x[:60], b=x[20:80], c=x[70:], d=np.zeros(5, np.float32))
    assert found["b"] - found["a"] == 20 * WORD_BYTES
    assert found["c"] - found["a"] == 70 * WORD_BYTES
    assert not found["a"] <= found["d"] < found["a"] + 100 * WORD_BYTES


def test_a_reversed_array_starts_at_its_last_word() -> None:
    x = np.zeros(100, np.float32)
    found = places(WordMemory(), a=x, b=x[::-1])
    assert found["b"] - found["a"] == 99 * WORD_BYTES


def test_elements_of_other_sizes_have_words_of_their_own() -> None:
    x = np.zeros(100, np.float32)
    found = places(WordMemory(), a=x, b=x.view(np.int16))
    assert abs(found["b"] - found["a"]) >= 100 * WORD_BYTES


def test_kinds_have_memory_of_their_own() -> None:
    x = describe_array(np.zeros(100, np.float32))
    found = WordMemory().addresses({"s": (STORES_OF, "x"), "l": (LOADS_OF, "x")}, {"x": x})
    assert abs(found["s"] - found["l"]) >= 100 * WORD_BYTES


def test_programs_are_counted_over_launches_until_words_have_no_room() -> None:
    memory = WordMemory()
    assert [memory.number_programs(count) for count in (10, 5, 1)] == [1, 11, 16]
    assert memory.number_programs(MOST_PROGRAMS - 17) == 1


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "bool"])
def test_what_the_host_writes_counts_as_written(dtype: str) -> None:
    x = uninitialised(50, dtype)
    watched = watched_behind(describe_array(x))
    assert watched is not None
    watched.refresh()
    assert watched.flags.all()
    x[10:20] = 1
    watched.refresh()
    assert watched.flags.tolist() == [not 10 <= i < 20 for i in range(50)]


def test_views_are_watched_and_the_dead_are_not() -> None:
    x = uninitialised((4, 8))
    described = describe_array(x[1])
    watched = watched_behind(described)
    assert watched is not None
    assert watched.flag_address(described) - watched.flag_address(describe_array(x)) == 8
    assert watched_behind(describe_array(x.view(np.int16))) is None
    del x, described
    gc.collect()
    assert watched_behind(describe_array(np.zeros(4, np.float32))) is None

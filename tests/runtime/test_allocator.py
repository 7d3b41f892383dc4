"""The allocator against what it promises: no overlap, alignment, best fit, and all memory comes back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from blocklang.runtime.allocator import Allocator

CAPACITY, ALIGNMENT = 4096, 64


class Allocations(RuleBasedStateMachine):
    """Requests and returns in any order, beside a plain list of who has what."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(CAPACITY, ALIGNMENT)
        self.taken: dict[int, int] = {}

    @rule(size=st.integers(0, 1500))
    def take(self, size: int) -> None:
        fitting = [n for _, n in self.allocator.free_pieces() if n >= max(size, 1)]
        before = dict(self.allocator.free_pieces())
        offset = self.allocator.take(size)
        assert (offset is None) == (not fitting)
        if offset is not None:
            assert before[offset] == min(fitting), "not the best fit"
            self.taken[offset] = self.allocator.size_of(offset)
            assert self.taken[offset] >= size

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.taken)))
        del self.taken[offset]
        self.allocator.give_back(offset)

    @invariant()
    def every_byte_is_in_one_piece(self) -> None:
        free = self.allocator.free_pieces()
        pieces = sorted([*free, *self.taken.items()])
        assert sum(size for _, size in pieces) == CAPACITY
        assert all(offset + size == following for (offset, size), (following, _) in pairwise(pieces))
        assert all(offset % ALIGNMENT == size % ALIGNMENT == 0 for offset, size in pieces)

    @invariant()
    def free_pieces_do_not_touch(self) -> None:
        free = self.allocator.free_pieces()
        assert all(offset + size < following for (offset, size), (following, _) in pairwise(free))
        assert self.allocator.largest_free == max((size for _, size in free), default=0)
        assert self.allocator.free_bytes == sum(size for _, size in free)


TestAllocations = Allocations.TestCase


@given(st.lists(st.integers(0, 700), max_size=30), st.randoms())
def test_all_memory_comes_back(sizes: list[int], random: object) -> None:
    allocator = Allocator(1 << 16, 128)
    offsets = [allocator.take(size) for size in sizes]
    random.shuffle(offsets)  # type: ignore[attr-defined]
    for offset in offsets:
        assert offset is not None
        allocator.give_back(offset)
    assert allocator.free_pieces() == [(0, 1 << 16)]


def test_capacity_is_rounded_down() -> None:
    allocator = Allocator(1000, 64)
    assert allocator.take(961) is None
    assert allocator.take(960) == 0
    assert Allocator(63, 64).take(1) is None


def test_what_is_not_taken_cannot_be_given_back() -> None:
    allocator = Allocator(1024, 64)
    with pytest.raises(KeyError):
        allocator.give_back(64)

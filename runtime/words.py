"""Memory for what checks remember of the elements of a launch's arrays (`blocklang.passes.check_races`).

Words of earlier launches stay where they are: they are lower than any of this launch, so no check counts
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blocklang.ops.faults import MOST_PROGRAMS
from blocklang.runtime.arrays import Array

WORD_BYTES = 8


@dataclass
class _Span:
    """Memory that arrays share: the addresses [low, high), of elements of one size."""

    low: int
    high: int
    size: int

    @property
    def elements(self) -> int:
        return max((self.high - self.low) // self.size, 1)


class WordMemory:
    """The words of all checked launches of a process; not for two launches at once."""

    def __init__(self) -> None:
        self._memory: dict[str, NDArray[np.int64]] = {}
        self._programs = 1

    def number_programs(self, count: int) -> int:
        """The number of the first of so many programs."""
        if self._programs + count >= MOST_PROGRAMS:
            self._memory, self._programs = {}, 1
        first = self._programs
        self._programs += count
        return first

    def addresses(self, kinds: Mapping[str, tuple[str, str]], arrays: Mapping[str, Array]) -> dict[str, int]:
        """Where the words of each array begin, by argument.

        Args:
            kinds: per argument, a kind of word and the name of an array. Arrays that share memory share
            words. arrays: by name.
        """
        spans = _spans({name: arrays[name] for _, name in kinds.values()})
        places: dict[str, dict[int, int]] = {}  # kind: span: its first word
        ends: dict[str, int] = {}
        for kind, name in kinds.values():
            span = spans[name]
            if id(span) not in places.setdefault(kind, {}):
                places[kind][id(span)] = ends.get(kind, 0)
                ends[kind] = ends.get(kind, 0) + span.elements
        for kind, end in ends.items():
            if kind not in self._memory or self._memory[kind].size < end:
                self._memory[kind] = np.zeros(end, np.int64)
        found = {}
        for argument, (kind, name) in kinds.items():
            span = spans[name]
            index = places[kind][id(span)] + (arrays[name].address - span.low) // span.size
            found[argument] = self._memory[kind].ctypes.data + WORD_BYTES * index
        return found


def _spans(arrays: Mapping[str, Array]) -> dict[str, _Span]:
    """The memory that each array lies in; one for arrays that overlap and whose elements coincide."""
    spans: dict[str, _Span] = {}
    last: dict[tuple[int, int], _Span] = {}  # by size, and where elements begin
    for name, array in sorted(arrays.items(), key=lambda item: item[1].byte_range()):
        low, high = array.byte_range()
        size = array.element.bytes
        span = last.get((size, low % size))
        if span is not None and low < span.high:
            span.high = max(span.high, high)
        else:
            span = last[size, low % size] = _Span(low, high, size)
        spans[name] = span
    return spans

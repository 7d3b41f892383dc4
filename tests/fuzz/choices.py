"""The random decisions behind a kernel, as a list of numbers that can be replayed and made smaller.

A generator asks `Choices` for every decision. The decisions taken are a record from which the same kernel
can be made again; a smaller record (fewer or lower numbers) makes a simpler kernel, since 0 is the
plainest answer to every question. A replay that runs out of numbers answers 0.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions, drawn at random or replayed.

    Attributes:
        taken: every decision so far.
    """

    def __init__(self, source: random.Random | Sequence[int]) -> None:
        self._source = source
        self.taken: list[int] = []

    def below(self, count: int) -> int:
        """A number in [0, count)."""
        if isinstance(self._source, random.Random):
            number = self._source.randrange(count)
        else:
            position = len(self.taken)
            number = min(self._source[position], count - 1) if position < len(self._source) else 0
        self.taken.append(number)
        return number

    def between(self, low: int, high: int) -> int:
        """A number in [low, high], `low` being the plainest."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, the first being the plainest."""
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 cases; False is the plainest."""
        return self.below(100) >= 100 - percent

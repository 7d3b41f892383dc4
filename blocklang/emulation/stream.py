"""What a device does for a program, as data: instructions on engines, in loops and branches.

A stream is written down by the planner of a kind of device (`neuron`, `gpu`) and timed by `simulate`. Times
are seconds. Values are numbers, unique in a stream; what they stand for is the planner's business: a block on
the chip, a row of an accumulator, an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blocklang.diagnostics import Location

NOWHERE = Location("", 0)


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction.

    Attributes:
        engine: what it occupies; "" for what takes no engine, as another view of the same bytes.
        seconds: for how long.
        reads: the values that must be there before it starts.
        writes: the values that are there `latency` seconds after it ends.
        latency: seconds between its end and the first use of what it writes.
        depth: how many versions of what it writes have a place: a loop that comes round again waits until the
            version so many rounds ago is no longer read. 0: it writes in place, or there is always room.
        ahead: it has a queue of its own: on devices that issue in order it does not wait for what stands
            before it, and nothing waits for it but what reads it.
        overtakes: it need not wait for instructions of its engine that stand before it and wait for something
            else: it fills their pauses, in parts if it must.
        bytes: how many it moves.
        space: where they come from or go to; "" if it moves none.
        label: what it does, for people.
        location: the user's line.
    """

    engine: str
    seconds: float
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    latency: float = 0.0
    depth: int = 0
    ahead: bool = False
    overtakes: bool = False
    bytes: float = 0.0
    space: str = ""
    label: str = ""
    location: Location = NOWHERE

    def with_values(self, reads: tuple[int, ...], writes: tuple[int, ...]) -> Instruction:
        """The same instruction on other values."""
        return replace(self, reads=reads, writes=writes)


@dataclass(frozen=True, slots=True)
class Loop:
    """Nodes that are run `trips` times; a fraction stands for an average over entries of the loop.

    Attributes:
        carried: (the value inside, the value before the first round, the value at the end of a round).
        results: (the value behind the loop, the value at the end of a round).
    """

    trips: float
    body: tuple[Node, ...]
    carried: tuple[tuple[int, int, int], ...] = ()
    results: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """Nodes that are run in `share` of the cases.

    Attributes:
        results: (the value behind the branch, the value in it).
    """

    share: float
    body: tuple[Node, ...]
    results: tuple[tuple[int, int], ...] = ()


Node = Instruction | Loop | Branch


def instructions_of(nodes: Sequence[Node]) -> Iterator[Instruction]:
    """Every instruction of a stream, at any depth."""
    for node in nodes:
        if isinstance(node, Instruction):
            yield node
        else:
            yield from instructions_of(node.body)


def without(nodes: Sequence[Node], free: frozenset[str]) -> tuple[Node, ...]:
    """The same stream if some engines took no time."""
    if not free:
        return tuple(nodes)
    return tuple(
        (replace(node, seconds=0.0, latency=0.0) if node.engine in free else node)
        if isinstance(node, Instruction)
        else replace(node, body=without(node.body, free))
        for node in nodes
    )

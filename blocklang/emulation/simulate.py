"""When each instruction of a stream runs: a simulation that goes from event to event, and repeats nothing.

The rules are those of queues. An engine runs its instructions one at a time, in the order of the stream; one
that overtakes fills the pauses of its engine, in parts if it must. An instruction starts when its engine is
free, what it reads is there, and what it writes has a place: the version `depth` rounds ago is no longer
read. Engines do not wait for each other otherwise, so a copy for the next round runs ahead as far as places
allow. On devices that issue in order (`in_order`) an instruction also starts no earlier than the one before
it of the same agent.

Such a system settles: once a few rounds of a loop took as long as the few before on every engine, later
ones do, too, and the rest is added at once. Loops that do not settle in `PATIENCE` rounds go on as in the
last half of these. What runs in a share of the cases only (branches, a loop's average round) takes that share
of its time.

Every time has a *cause*: the seconds of the path that led to it, by instruction. The cause of the last time
is what the launch waited for.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from blocklang.emulation.stream import Branch, Instruction, Loop, Node

PATIENCE = 64
_PAUSES = 256  # of an engine that are remembered
_LONGEST = 8  # rounds that are tried as a period
_SETTLED = 1e-9  # of a round's time

Name = TypeVar("Name")
Key = tuple[str, object]
Array = np.ndarray[Any, np.dtype[np.float64]]
_LAST: Key = ("last", None)


@dataclass(slots=True)
class Moment:
    """A time, and the seconds by instruction of the path that led to it."""

    time: float
    cause: Array

    def later(self, seconds: float, cause: Array) -> Moment:
        """A moment so many seconds later, of which `cause` says what for."""
        return Moment(self.time + seconds, self.cause + cause)


@dataclass(frozen=True, slots=True)
class _Pause:
    """An engine does nothing from `first` to `last`; the pauses are numbered as they were made."""

    first: Moment
    last: Moment
    made: int

    def later(self, seconds: float, cause: Array) -> _Pause:
        """The same pause, so many seconds later."""
        return _Pause(self.first.later(seconds, cause), self.last.later(seconds, cause), self.made)

    def without(self, begin: Moment, end: Moment) -> list[_Pause]:
        """What is left of it before `begin` and behind `end`."""
        parts = (_Pause(self.first, begin, self.made), _Pause(end, self.last, self.made))
        return [p for p in parts if p.first.time < p.last.time]


class _Pauses:
    """The last pauses of an engine, in the order of time. All move on together, at the cost of one."""

    def __init__(self, start: Moment) -> None:
        self._pauses: list[_Pause] = []  # as of before they moved
        self._moved = start

    def __len__(self) -> int:
        return len(self._pauses)

    def __getitem__(self, position: int) -> _Pause:
        return self._pauses[position].later(self._moved.time, self._moved.cause)

    def first_behind(self, ready: Moment) -> int:
        """The position of the first pause that lasts beyond a time."""
        return bisect_right(self._pauses, ready.time - self._moved.time, key=_end_of)

    def append(self, pause: _Pause) -> None:
        """Add the last one."""
        self.replace(len(self._pauses), len(self._pauses), [pause])
        del self._pauses[:-_PAUSES]

    def replace(self, low: int, high: int, pauses: Sequence[_Pause]) -> None:
        """Put these where those from `low` to `high` were."""
        time, cause = -self._moved.time, -self._moved.cause
        self._pauses[low:high] = [pause.later(time, cause) for pause in pauses]

    def move(self, seconds: float, cause: Array) -> None:
        """Let all be so many seconds later."""
        self._moved = self._moved.later(seconds, cause)


@dataclass(frozen=True, slots=True)
class _State:
    """All that a round of a loop changes."""

    moments: dict[Key, Moment]
    busy: dict[str, float]
    bytes: dict[str, float]
    runs: float
    made: int
    oldest: int


@dataclass(frozen=True)
class Event:
    """An instruction that was run, for a timeline."""

    instruction: Instruction
    agent: int
    start: float
    end: float


@dataclass(frozen=True)
class Simulation:
    """What a simulation found.

    Attributes:
        seconds: from the start to the end of the last instruction.
        busy: seconds that each engine worked.
        bytes: moved, by space.
        causes: seconds of the path that ended last, by instruction; they sum up to `seconds`.
        events: the first instructions, in the order of the stream.
        runs: how many instructions were run.
    """

    seconds: float
    busy: dict[str, float]
    bytes: dict[str, float]
    causes: dict[Instruction, float]
    events: tuple[Event, ...] = ()
    runs: float = 0.0

    def then(self, other: Simulation) -> Simulation:
        """This, and the other one behind it."""
        return Simulation(
            self.seconds + other.seconds,
            _sums(self.busy, other.busy),
            _sums(self.bytes, other.bytes),
            _sums(self.causes, other.causes),
            self.events or other.events,
            self.runs + other.runs,
        )


def _sums(one: Mapping[Name, float], other: Mapping[Name, float]) -> dict[Name, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}


def simulate(
    nodes: Sequence[Node],
    *,
    agents: int = 1,
    in_order: bool = False,
    events: int = 0,
    every_round: bool = False,
) -> Simulation:
    """Run `agents` equal streams side by side on shared engines.

    Args:
        in_order: an agent starts its instructions in the order of the stream.
        events: how many instructions to note for a timeline.
        every_round: go through every round of every loop, however many there are (for tests).
    """
    return _Simulator(nodes, agents, in_order, events, every_round).run(nodes)


class _Simulator:
    def __init__(
        self, nodes: Sequence[Node], agents: int, in_order: bool, events: int, every_round: bool
    ) -> None:
        self.agents = agents
        self.every_round = every_round
        self.in_order = in_order
        self.numbers: dict[int, int] = {}  # of an instruction, by its identity
        self.instructions: list[Instruction] = []
        self._number(nodes)
        self.start = Moment(0.0, np.zeros(len(self.instructions)))
        self.moments: dict[Key, Moment] = {}
        self.versions: dict[Key, list[Moment]] = defaultdict(list)
        self.pauses: dict[str, _Pauses] = defaultdict(lambda: _Pauses(self.start))
        self.made = 0  # pauses so far
        self.oldest = 0  # that was filled in this round
        self.aliases: dict[tuple[int, int], tuple[int, int]] = {}
        self.touched: set[Key] = set()
        self.busy: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, float] = defaultdict(float)
        self.moments[_LAST] = self.start
        self.scale = 1.0
        self.runs = 0.0
        self.events: list[Event] = []
        self.wanted = events

    def _number(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Instruction):
                self.numbers[id(node)] = len(self.instructions)
                self.instructions.append(node)
            else:
                self._number(node.body)

    def run(self, nodes: Sequence[Node]) -> Simulation:
        self.nodes(nodes)
        last = self.moments[_LAST]
        causes = {i: float(s) for i, s in zip(self.instructions, last.cause, strict=True) if s > 0}
        return Simulation(last.time, dict(self.busy), dict(self.bytes), causes, tuple(self.events), self.runs)

    def nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Instruction):
                for agent in range(self.agents):
                    self.instruction(node, agent)
            elif isinstance(node, Loop):
                self.loop(node)
            else:
                self.branch(node)

    # ---- one instruction ----

    def set(self, key: Key, moment: Moment) -> None:
        self.moments[key] = moment
        self.touched.add(key)

    def instruction(self, node: Instruction, agent: int) -> None:
        begin = self.start
        waits = self.in_order and not node.ahead
        if waits:
            begin = _later(begin, self.moments.get(("issue", agent), self.start))
        for value in node.reads:
            begin = _later(begin, self.moments.get(("ready", (agent, value)), self.start))
        if node.depth:
            for value in node.writes:
                begin = _later(begin, self.place(agent, value, node.depth))
        number = self.numbers[id(node)]
        begin, end = self.occupy(node, begin, node.seconds * self.scale, number)
        done = _after(end, node.latency * self.scale, number) if node.latency else end
        if waits:
            self.set(("issue", agent), begin)
        for value in node.reads:
            self.release(agent, value, end)
        for value in node.writes:
            self.set(("ready", (agent, value)), done)
            self.set(("released", (agent, value)), done)
        if node.engine:
            self.busy[node.engine] += node.seconds * self.scale
        if node.space:
            self.bytes[node.space] += node.bytes * self.scale
        if done.time > self.moments[_LAST].time:
            self.set(_LAST, done)
        self.runs += self.scale
        if node.engine and len(self.events) < self.wanted:
            self.events.append(Event(node, agent, begin.time, end.time))

    def occupy(self, node: Instruction, ready: Moment, seconds: float, number: int) -> tuple[Moment, Moment]:
        """When an instruction that could start at `ready` has its engine, and until when."""
        if not node.engine:
            return ready, _after(ready, seconds, number)
        if node.overtakes:
            return self.spread(node, ready, seconds, number)
        return self.append(node, ready, seconds, number)

    def append(self, node: Instruction, ready: Moment, seconds: float, number: int) -> tuple[Moment, Moment]:
        """Behind all that its engine has to do."""
        free = self.moments.get(("engine", node.engine), self.start)
        begin = _later(ready, free)
        end = _after(begin, seconds, number)
        if node.overtakes and free.time < begin.time:
            self.made += 1
            self.pauses[node.engine].append(_Pause(free, begin, self.made))
        self.set(("engine", node.engine), end)
        return begin, end

    def spread(self, node: Instruction, ready: Moment, seconds: float, number: int) -> tuple[Moment, Moment]:
        """Over the pauses of its engine from `ready` on, and what is left behind all that it has to do."""
        first: Moment | None = None
        end = ready
        pauses = self.pauses[node.engine]
        low = high = pauses.first_behind(ready)
        kept: list[_Pause] = []
        while high < len(pauses) and (seconds > 0 or first is None):
            pause = pauses[high]
            begin = _later(ready, pause.first)
            part = max(0.0, min(seconds, pause.last.time - begin.time))
            end = _after(begin, part, number)
            first = first or begin
            seconds -= part
            kept += pause.without(begin, end)
            self.oldest = min(self.oldest, pause.made)
            high += 1
        if high > low:
            pauses.replace(low, high, kept)
            self.touched.add(("engine", node.engine))
        if seconds > 0 or first is None:
            begin, end = self.append(node, ready, seconds, number)
            first = first or begin
        return first, end

    def place(self, agent: int, value: int, depth: int) -> Moment:
        """When a new version of a value may be written."""
        key: Key = ("released", (agent, value))
        versions = self.versions[key]
        if key in self.moments:
            versions.append(self.moments[key])
            del versions[:-depth]
        return versions[0] if len(versions) == depth else self.start

    def release(self, agent: int, value: int, end: Moment) -> None:
        """A value, and what it is another name of, is read until `end`."""
        name: tuple[int, int] | None = (agent, value)
        for _ in range(4):
            if name is None:
                return
            key: Key = ("released", name)
            if key in self.moments:
                self.set(key, _later(self.moments[key], end))
            name = self.aliases.get(name)

    def rename(self, agent: int, new: int, old: int) -> None:
        """Let one value stand for another."""
        self.set(("ready", (agent, new)), self.moments.get(("ready", (agent, old)), self.start))
        if new != old:
            self.aliases[agent, new] = (agent, old)

    # ---- control flow ----

    def branch(self, branch: Branch) -> None:
        if branch.share > 0:
            self.part(min(branch.share, 1.0), branch.body)
            for agent in range(self.agents):
                for result, value in branch.results:
                    self.rename(agent, result, value)

    def part(self, share: float, nodes: Sequence[Node]) -> None:
        """Run nodes that are run in `share` of the cases: each takes that share of its time."""
        outer, self.scale = self.scale, self.scale * share
        self.nodes(nodes)
        self.scale = outer

    def loop(self, loop: Loop) -> None:
        for agent in range(self.agents):
            for inside, outside, _ in loop.carried:
                self.rename(agent, inside, outside)
        rounds = int(loop.trips)
        outer, touched = self.touched, list[set[Key]]()
        states, done, depth = [self.state()], 0, _deepest(loop.body)
        while done < rounds:
            self.touched, self.oldest = set(), self.made + 1
            self.round(loop, 1.0)
            done += 1
            states.append(self.state())
            touched.append(self.touched)
            period = 0 if self.every_round else _period(states, touched, depth)
            if period and (times := (rounds - done) // period):
                self.touched = set().union(*touched[-period:])
                self.skip(times, states[-1 - period])
                done += times * period
                states = [self.state()]  # the rounds that are left are fewer than a period
                touched[:] = [set().union(*touched)]
        if rest := loop.trips - rounds:
            self.round(loop, rest)
        self.touched = outer.union(self.touched, *touched)
        for agent in range(self.agents):
            for result, end in loop.results:
                self.rename(agent, result, end if loop.trips else _before(loop, end))

    def round(self, loop: Loop, share: float) -> None:
        if share == 1.0:
            self.nodes(loop.body)
        else:
            self.part(share, loop.body)
        for agent in range(self.agents):
            for inside, _, end in loop.carried:
                self.rename(agent, inside, end)

    def state(self) -> _State:
        return _State(
            dict(self.moments), dict(self.busy), dict(self.bytes), self.runs, self.made, self.oldest
        )

    def skip(self, times: int, before: _State) -> None:
        """Repeat what happened since `before`: each moment moves on, with what caused its step."""
        last, first = self.moments[_LAST], before.moments.get(_LAST, self.start)
        latest = last
        for key in self.touched - {_LAST}:
            now, then = self.moments[key], before.moments.get(key)
            end, begin = (now, then) if then is not None else (last, first)
            step, cause = times * (end.time - begin.time), times * (end.cause - begin.cause)
            self.moments[key] = now.later(step, cause)
            latest = _later(latest, self.moments[key])
            if key in self.versions:
                self.versions[key] = [v.later(step, cause) for v in self.versions[key]]
            if key[0] == "engine":
                self.pauses[str(key[1])].move(step, cause)
        self.set(_LAST, latest)
        for totals, old in ((self.busy, before.busy), (self.bytes, before.bytes)):
            for name, total in totals.items():
                totals[name] = total + times * (total - old.get(name, 0.0))
        self.runs += times * (self.runs - before.runs)


def _before(loop: Loop, end: int) -> int:
    """What a loop that is not entered leaves for the value at the end of a round."""
    return next((outside for _, outside, last in loop.carried if last == end), end)


def _period(states: Sequence[_State], touched: Sequence[set[Key]], depth: int) -> int:
    """After how many rounds a loop repeats itself; 0 if it has not settled.

    Args:
        depth: of the deepest places in the loop: before they are full, rounds are faster.
    """
    rounds = len(states) - 1
    if rounds >= PATIENCE:
        return rounds // 2
    for period in range(1, _LONGEST + 1):
        repeats = max(2, math.ceil((depth + 1) / period))  # a burst into free places is not a rhythm
        if repeats * period + depth > rounds:
            continue
        window = states[-repeats * period :]
        earlier = states[max(0, rounds - (repeats + 1) * period)].made
        if min(state.oldest for state in window) <= earlier:  # a pause from before, which ends some time
            continue
        keys = set().union(*touched[-period:]) - {_LAST}
        if _is_settled(states[-1 - repeats * period :], period, keys):
            return period
    return 0


def _is_settled(states: Sequence[_State], period: int, keys: Collection[Key]) -> bool:
    """True if all moments move on by the same time from each round to the one `period` rounds later."""
    if not all(key in states[0].moments for key in keys):
        return False
    steps = [
        now.moments[key].time - then.moments[key].time
        for then, now in zip(states, states[period:], strict=False)
        for key in keys
    ]
    return not steps or max(steps) - min(steps) <= _SETTLED * max(steps)


def _deepest(nodes: Sequence[Node]) -> int:
    """The most places that something written in these nodes has."""
    return max(
        (n.depth if isinstance(n, Instruction) else _deepest(n.body) for n in nodes),
        default=0,
    )


def _end_of(pause: _Pause) -> float:
    return pause.last.time


def _later(one: Moment, other: Moment) -> Moment:
    return other if other.time > one.time else one


def _after(begin: Moment, seconds: float, number: int) -> Moment:
    cause = begin.cause.copy()
    cause[number] += seconds
    return Moment(begin.time + seconds, cause)

"""The simulation of streams: by hand, and what it adds at once against every round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocklang.emulation.simulate import Simulation, simulate
from blocklang.emulation.stream import Branch, Instruction, Loop, Node, without

LOAD, PRODUCT, RESULT = 1, 2, 3


def load(seconds: float, *, latency: float = 0.0, depth: int = 2) -> Instruction:
    return Instruction(
        "dma", seconds, (), (LOAD,), latency=latency, depth=depth, overtakes=True, bytes=8, space="global"
    )


def multiply(seconds: float) -> Instruction:
    return Instruction("tensor", seconds, (LOAD, PRODUCT), (PRODUCT,))


def test_one_after_the_other() -> None:
    found = simulate([load(3, latency=1), multiply(2)])
    assert found.seconds == 6
    assert found.busy == {"dma": 3, "tensor": 2}


@pytest.mark.parametrize(("depth", "expected"), [(1, 10 * 5), (2, 3 * 10 + 2)])
def test_a_second_place_lets_the_next_load_run_ahead(depth: int, expected: float) -> None:
    found = simulate([Loop(10, (load(3, depth=depth), multiply(2)))])
    assert found.seconds == pytest.approx(expected)


def test_the_slower_engine_is_what_is_waited_for() -> None:
    body = (load(3), multiply(5))
    found = simulate([Loop(1000, body)])
    assert found.seconds == pytest.approx(3 + 5000)
    assert {i.engine: round(s) for i, s in found.causes.items()} == {"dma": 3, "tensor": 5000}
    assert found.bytes == {"global": 8000}


def test_a_store_that_waits_does_not_hold_up_loads() -> None:
    """Transfers have queues of their own: the next load starts before the store of this round."""
    store = Instruction("dma", 1, (PRODUCT,), (), overtakes=True)
    found = simulate([Loop(100, (load(2), multiply(4), store))])
    assert found.seconds == pytest.approx(2 + 400 + 1)


def test_views_take_no_engine() -> None:
    """Another view of the same bytes waits for nothing but what it shows."""
    view, late = Instruction("", 0, (PRODUCT,), (RESULT,)), Instruction("", 0, (LOAD,), (RESULT + 1,))
    use = Instruction("vector", 1, (RESULT + 1,), ())
    found = simulate([multiply(10), view, load(1), late, use])
    assert found.busy == {"tensor": 10, "dma": 1, "vector": 1}
    assert found.seconds == 10


def test_in_order_an_agent_waits_and_others_fill_the_pause() -> None:
    body = (load(1, latency=9), multiply(5))
    alone = simulate([Loop(50, body)], in_order=True)
    several = simulate([Loop(50, body)], agents=4, in_order=True)
    assert alone.seconds > 50 * 9
    assert 4 * 50 * 5 <= several.seconds < 4 * 50 * 5 + 20


def test_a_branch_takes_its_share() -> None:
    found = simulate([Loop(100, (Branch(0.25, (multiply(4),)),))])
    assert found.seconds == pytest.approx(100)


def test_a_loop_may_have_an_average_of_rounds() -> None:
    assert simulate([Loop(2.5, (multiply(4),))]).seconds == pytest.approx(10)
    assert simulate([Loop(0, (multiply(4),))]).seconds == 0


def test_an_engine_that_takes_no_time() -> None:
    stream = (Loop(10, (load(3), multiply(2))),)
    assert simulate(without(stream, frozenset({"dma"}))).seconds == pytest.approx(20)


def test_a_timeline_has_the_first_instructions() -> None:
    found = simulate([Loop(5, (load(3), multiply(2)))], events=3)
    spans = [(e.instruction.engine, e.start, e.end) for e in found.events]
    assert spans == [("dma", 0, 3), ("tensor", 3, 5), ("dma", 3, 6)]


# ---- laws ----

ENGINES = ("dma", "tensor", "vector")
SECONDS = st.sampled_from([1.0, 2.0, 2.5, 7.0])


@st.composite
def instructions(draw: st.DrawFn) -> Instruction:
    engine = draw(st.sampled_from(ENGINES))
    return Instruction(
        engine,
        draw(SECONDS),
        tuple(draw(st.lists(st.integers(0, 9), max_size=2))),
        latency=draw(st.sampled_from([0.0, 1.0, 4.0])),
        depth=draw(st.integers(0, 3)),
        overtakes=engine != "tensor",
    )


def nodes(depth: int) -> st.SearchStrategy[Node]:
    if depth == 0:
        return instructions()
    inner = st.lists(nodes(depth - 1), min_size=1, max_size=3).map(tuple)
    loops = st.builds(Loop, st.integers(0, 90).map(float), inner)
    return st.one_of(instructions(), loops)


def named(stream: Sequence[Node], count: list[int]) -> tuple[Node, ...]:
    """The same, every instruction with a value of its own, as planners write them."""
    found: list[Node] = []
    for node in stream:
        if isinstance(node, Instruction):
            count[0] += 1
            found.append(replace(node, writes=(count[0],)))
        else:
            found.append(replace(node, body=named(node.body, count)))
    return tuple(found)


STREAMS = st.lists(nodes(2), min_size=1, max_size=3).map(lambda drawn: named(drawn, [0]))


@settings(max_examples=150, deadline=None)
@given(STREAMS)
def test_what_is_added_at_once_is_what_every_round_takes(stream: tuple[Node, ...]) -> None:
    fast = simulate(stream)
    slow = simulate(stream, every_round=True)
    assert fast.seconds == pytest.approx(slow.seconds, rel=0.02)
    check_books(fast, slow)


@settings(max_examples=60, deadline=None)
@given(STREAMS, st.integers(2, 3))
def test_agents_in_order_keep_the_books(stream: tuple[Node, ...], agents: int) -> None:
    """Agents that begin apart may fill old pauses for a while: their time is near, the work exact."""
    fast = simulate(stream, agents=agents, in_order=True)
    slow = simulate(stream, agents=agents, in_order=True, every_round=True)
    assert fast.seconds == pytest.approx(slow.seconds, rel=0.25)
    check_books(fast, slow)


def check_books(fast: Simulation, slow: Simulation) -> None:
    """The same work; all time has a cause; no engine works longer than the launch."""
    assert fast.busy == pytest.approx(slow.busy)
    assert fast.runs == pytest.approx(slow.runs)
    for found in (fast, slow):
        assert math.fsum(found.causes.values()) == pytest.approx(found.seconds)
    assert all(busy <= slow.seconds * (1 + 1e-9) for busy in slow.busy.values())

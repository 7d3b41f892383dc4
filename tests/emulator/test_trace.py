"""The trace keeps to Chrome's trace event format: the fields it documents, of the types it documents.

From "Trace Event Format": the object form has `traceEvents`, and may have `displayTimeUnit` ("ms" or "ns")
and `otherData`. Every event has `name`, `ph`, `ts`, `pid`, `tid`; a complete event (`X`) has `dur`, may have
`cat` (a comma-separated list) and `args`; a metadata event (`M`) has one of the names that are listed, with
the argument that belongs to it. Events of a thread nest.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

import blocklang as bl
from blocklang.emulation.profile import Profile
from blocklang.emulation.trace import LAUNCHES, format_trace, trace_of
from tests.emulator.reported import launch_product, launch_softmax, matmul_profile, untimed

METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


@pytest.fixture(scope="module", params=["trn2", "h100"])
def profile(request: pytest.FixtureRequest) -> Profile:
    """Two launches of a product and one of a softmax."""
    with bl.emulate(request.param) as found:
        launch_product()
        launch_softmax()
        launch_product()
    return found


def complete(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_documented_fields(profile: Profile) -> None:
    trace = json.loads(format_trace(profile))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert trace["otherData"]["device"] == profile.device.name
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["ts"], (int, float))
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            key, kind = METADATA[event["name"]]
            assert set(event["args"]) == {key}
            assert isinstance(event["args"][key], kind)
            assert set(event) == {"ph", "name", "pid", "tid", "ts", "args"}
        else:
            assert event["ph"] == "X"
            assert isinstance(event["dur"], (int, float))
            assert event["dur"] >= 0
            assert event["ts"] >= 0
            assert isinstance(event["cat"], str)
            assert set(event) == {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"}


def test_every_thread_has_a_name(profile: Profile) -> None:
    events = trace_of(profile)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[LAUNCHES] == "launches"
    assert {e["tid"] for e in events} == set(names)
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == [profile.device.name]
    for event in complete(trace_of(profile)):
        if event["tid"] != LAUNCHES:
            assert event["cat"] == names[event["tid"]]


def test_events_of_a_thread_nest(profile: Profile) -> None:
    events = sorted(complete(trace_of(profile)), key=lambda e: (e["tid"], e["ts"], -e["dur"]))
    for _, thread in groupby(events, key=lambda e: e["tid"]):
        open_until: list[float] = []
        for event in thread:
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"] + 1e-9:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)


def test_launches_follow_each_other(profile: Profile) -> None:
    launches = [event for event in complete(trace_of(profile)) if event["tid"] == LAUNCHES]
    assert [event["name"] for event in launches] == ["product", "softmax"]
    first, second = launches
    assert first["args"]["launches"] == 2
    assert first["ts"] == 0
    assert second["ts"] == pytest.approx(first["dur"], abs=1e-5)
    assert profile.seconds is not None
    assert second["ts"] + second["dur"] == pytest.approx(1e6 * profile.seconds, abs=1e-5)
    inside = [e for e in complete(trace_of(profile)) if e["tid"] != LAUNCHES]
    assert all(e["ts"] + e["dur"] <= second["ts"] + second["dur"] + 1e-5 for e in inside)


def test_instructions_have_lines_and_bytes() -> None:
    profile = matmul_profile("trn2")
    trace = trace_of(profile)
    (launch,) = profile.launches
    moves = [e for e in complete(trace) if e["cat"] == "dma"]
    assert {e["args"]["file"] for e in moves} == {"reported.py"}
    lines = {line.line for line in launch.counts.lines.values() if "global" in line.memory}
    assert {e["args"]["line"] for e in moves} == lines
    assert sum(e["args"]["bytes"] for e in moves) == launch.counts.memory["global"].bytes
    assert {e["args"]["space"] for e in moves} == {"global"}


def test_without_a_time_there_is_nothing_but_names() -> None:
    trace = trace_of(matmul_profile(untimed()))
    assert not complete(trace)
    assert json.loads(json.dumps(trace)) == trace

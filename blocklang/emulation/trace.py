"""A profile in Chrome's JSON trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is described in "Trace Event Format" (Google, the document that the Chromium project links). Used
are the object form with `traceEvents`, metadata events (`M`: names of the process and its threads, and the
order of these) and complete events (`X`: `ts` and `dur` in microseconds).

One process is the device. Its first thread has the launches, one after the other, equal ones as one event;
each other thread is an engine, with the first instructions of every launch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from blocklang.emulation.profile import LaunchProfile, Profile
from blocklang.emulation.simulate import Event

PROCESS = 1
LAUNCHES = 0  # the thread of the launches

TraceEvent = dict[str, Any]


def format_trace(profile: Profile) -> str:
    """The trace as JSON."""
    return json.dumps(trace_of(profile), separators=(",", ":")) + "\n"


def trace_of(profile: Profile) -> dict[str, Any]:
    """The trace as an object; launches without a time are not in it."""
    device = profile.device
    timed = [launch for launch in profile.launches if launch.estimate is not None]
    engines = list(dict.fromkeys(e for launch in timed if launch.estimate for e in launch.estimate.busy))
    threads = {name: number for number, name in enumerate(engines, start=LAUNCHES + 1)}
    events = list(_names(device.name, threads))
    begin = 0.0
    for launch in timed:
        assert launch.estimate is not None
        events.append(_launch(launch, begin))
        # An instruction that was run in parts stands before those that ran in its pauses.
        shown = sorted(launch.estimate.events, key=lambda event: (event.start, -event.end))
        events.extend(_instruction(event, threads, begin) for event in shown)
        begin += launch.times * launch.estimate.seconds
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"device": device.name, "title": device.title},
    }


def _names(device: str, threads: dict[str, int]) -> Iterator[TraceEvent]:
    yield _metadata("process_name", LAUNCHES, {"name": device})
    for name, number in {"launches": LAUNCHES, **threads}.items():
        yield _metadata("thread_name", number, {"name": name})
        yield _metadata("thread_sort_index", number, {"sort_index": number})


def _metadata(name: str, thread: int, arguments: dict[str, Any]) -> TraceEvent:
    return {"ph": "M", "name": name, "pid": PROCESS, "tid": thread, "ts": 0, "args": arguments}


def _launch(launch: LaunchProfile, begin: float) -> TraceEvent:
    assert launch.estimate is not None
    return {
        "ph": "X",
        "name": launch.kernel,
        "cat": "launch",
        "pid": PROCESS,
        "tid": LAUNCHES,
        **_span(begin, begin + launch.times * launch.estimate.seconds),
        "args": {
            "file": launch.location.file,
            "line": launch.location.line,
            "grid": list(launch.grid),
            "launches": launch.times,
            "bottleneck": launch.estimate.bottleneck,
            "instructions_shown": len(launch.estimate.events),
        },
    }


def _span(start: float, end: float) -> TraceEvent:
    """Microseconds, in whole picoseconds, so that neighbours do not overlap by a rounding."""
    first, last = round(start * 1e12), round(end * 1e12)
    return {"ts": first / 1e6, "dur": (last - first) / 1e6}


def _instruction(event: Event, threads: dict[str, int], begin: float) -> TraceEvent:
    instruction = event.instruction
    place = instruction.location
    arguments: dict[str, Any] = {
        "file": os.path.basename(place.file),
        "line": place.line,
        "bytes": instruction.bytes,
        "program": event.agent,
    }
    if instruction.space:
        arguments["space"] = instruction.space
    return {
        "ph": "X",
        "name": instruction.label or instruction.engine,
        "cat": instruction.engine,
        "pid": PROCESS,
        "tid": threads[instruction.engine],
        **_span(begin + event.start, begin + event.end),
        "args": arguments,
    }

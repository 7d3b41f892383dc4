"""The events of one launch: read from the list that its programs push on, printed, and raised.

Programs may have run at the same time; what they say appears in ascending order of their ids. The first
assertion that failed, or fault, in this order, is raised; what comes behind it is not printed. A program that
fails does not stop those of other threads.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from blocklang.abi import EVENT_HEADER_BYTES, SLOT_BYTES, EventOperation, FaultOperation
from blocklang.diagnostics import BlocklangError, CheckError, LaunchError, render_caret
from blocklang.ops.events import assertion_failure, index_of, lines_of
from blocklang.ops.faults import RACE, earlier_access, fault_error, program_note
from blocklang.runtime.arrays import Array, numpy_dtype


class _Log(ctypes.Structure):
    """What compiled code pushes on: `EVENTS_HEAD` and `EVENTS_LOST` of `blocklang.abi`."""

    _fields_ = [("head", ctypes.c_void_p), ("lost", ctypes.c_int64)]


class _Record(NamedTuple):
    operation: EventOperation
    program: int
    payload: bytes


class Fault(NamedTuple):
    """A fault, or an assertion that did not hold, as a launch that collects them has it.

    Attributes:
        operation: the check.
        program: its index in the grid.
        lane: its index in the block; () of a scalar.
        details: what `blocklang.ops.faults.DETAILS` names.
        error: what is said.
    """

    operation: EventOperation
    program: tuple[int, int, int]
    lane: tuple[int, ...]
    details: tuple[int, ...]
    error: BlocklangError


class _Named:
    """An array of the launch, as a message names it."""

    def __init__(self, name: str, array: Array) -> None:
        self.description = f"{name!r} ({numpy_dtype(array.element)} of shape {tuple(array.shape)})"
        self.start = array.address
        self.element_size = array.element.bytes
        self.low, self.high = array.byte_range()


class EventLog:
    """The list of one launch.

    Args:
        operations: the events of the kernel, by number.
        grid: the launch's extents.
        arrays: by the name of the argument, for what a fault says.
    """

    def __init__(
        self,
        operations: Sequence[EventOperation],
        grid: Sequence[int],
        arrays: Mapping[str, Array] | None = None,
    ) -> None:
        self._operations = operations
        self._grid = grid
        self._arrays = arrays or {}
        self._log = _Log()
        self.address = ctypes.addressof(self._log)

    def finish(self, found: list[Fault] | None = None) -> None:
        """Print what was recorded, and forget it. No program runs any more.

        Args:
            found: takes faults and failed assertions, in ascending order of programs, instead of raising the
                first.

        Raises:
            DeviceAssertionError: an assertion did not hold.
            CheckError: a check found a fault.
            LaunchError: there was no memory for some records.
        """
        lost = self._log.lost
        text, failure = self._said(self._take(), found)
        if text and sys.stdout is not None:
            sys.stdout.write(text)
        if failure is not None:
            raise failure
        if lost:
            raise LaunchError(
                f"{lost} prints or failed assertions were lost: there was no memory to record them",
                help="print less, or launch fewer programs at once",
            )

    def _take(self) -> list[_Record]:
        """All records, in ascending order of programs; those of one program in its order."""
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = [ctypes.c_void_p], None
        records: list[_Record] = []
        place, self._log.head, self._log.lost = self._log.head, None, 0
        while place:
            following, number, program = (ctypes.c_int64 * 3).from_address(place)
            operation = self._operations[number]
            payload = ctypes.string_at(place + EVENT_HEADER_BYTES, operation.payload_bytes)
            records.append(_Record(operation, program, payload))
            free(place)
            place = following
        records.reverse()
        return sorted(records, key=lambda record: record.program)

    def _said(
        self, records: Sequence[_Record], found: list[Fault] | None
    ) -> tuple[str, BlocklangError | None]:
        """The lines up to the first failure, and that failure; all lines if failures are collected."""
        lines: list[str] = []
        failure: BlocklangError | None = None
        for record in records:
            operation, program = record.operation, self._index_of(record.program)
            if operation.is_assertion:
                lane = int.from_bytes(record.payload, "little")
                failure = assertion_failure(
                    operation.text, operation.location, program, lane, operation.shape
                )
                if found is None:
                    break
                found.append(Fault(operation, program, index_of(lane, operation.shape), (), failure))
                failure = None
                continue
            if operation.fault is not None:
                fault = self._fault(operation, operation.fault, program, record.payload)
                if found is None:
                    failure = fault.error
                    break
                found.append(fault)
                continue
            size = operation.element_bytes
            elements = [
                int.from_bytes(record.payload[at : at + size], "little")
                for at in range(0, len(record.payload), size or 1)
            ]
            lines += lines_of(
                program, operation.text, operation.type, operation.shape, elements, hex=operation.hex
            )
        return "".join(line + "\n" for line in lines), failure

    def _fault(
        self, operation: EventOperation, fault: FaultOperation, program: tuple[int, int, int], payload: bytes
    ) -> Fault:
        lane = index_of(int.from_bytes(payload[:4], "little"), operation.shape)
        details = [
            int.from_bytes(payload[at : at + SLOT_BYTES], "little", signed=True)
            for at in range(SLOT_BYTES, len(payload), SLOT_BYTES)
        ]
        error = fault_error(
            CheckError,
            fault.kind,
            fault.action,
            lane,
            fault.size,
            details,
            [_Named(name, self._arrays[name]) for name in fault.arrays if name in self._arrays],
            operation.location,
        )
        error.notes.append(program_note(program))
        if fault.kind == RACE:
            action, location, other = earlier_access(details, fault.places, self._grid)
            caret = render_caret(location)
            error.notes.append(
                f"the {action} in program [{', '.join(map(str, other))}] is at {location}"
                + (f"\n{caret}" if caret else "")
            )
        return Fault(operation, program, lane, tuple(details), error)

    def _index_of(self, program: int) -> tuple[int, int, int]:
        rest, x = divmod(program, self._grid[0])
        z, y = divmod(rest, self._grid[1])
        return x, y, z

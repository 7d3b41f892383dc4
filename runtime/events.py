"""The events of one launch: read from the list that its programs push on, printed, and raised.

Programs may have run at the same time; what they say appears in ascending order of their ids. The first
assertion that failed, in this order, is raised; what comes behind it is not printed. A program that fails
does not stop those of other threads.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import NamedTuple

from blocklang.abi import EVENT_HEADER_BYTES, EventOperation
from blocklang.diagnostics import DeviceAssertionError, LaunchError
from blocklang.ops.events import assertion_failure, lines_of


class _Log(ctypes.Structure):
    """What compiled code pushes on: `EVENTS_HEAD` and `EVENTS_LOST` of `blocklang.abi`."""

    _fields_ = [("head", ctypes.c_void_p), ("lost", ctypes.c_int64)]


class _Record(NamedTuple):
    operation: EventOperation
    program: int
    payload: bytes


class EventLog:
    """The list of one launch.

    Args:
        operations: the events of the kernel, by number.
        grid: the launch's extents.
    """

    def __init__(self, operations: Sequence[EventOperation], grid: Sequence[int]) -> None:
        self._operations = operations
        self._grid = grid
        self._log = _Log()
        self.address = ctypes.addressof(self._log)

    def finish(self) -> None:
        """Print what was recorded, and forget it. No program runs any more.

        Raises:
            DeviceAssertionError: an assertion did not hold.
            LaunchError: there was no memory for some records.
        """
        lost = self._log.lost
        text, failure = self._said(self._take())
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

    def _said(self, records: Sequence[_Record]) -> tuple[str, DeviceAssertionError | None]:
        """The lines up to the first failure, and that failure."""
        lines: list[str] = []
        failure: DeviceAssertionError | None = None
        for record in records:
            operation, program = record.operation, self._index_of(record.program)
            if operation.is_assertion:
                lane = int.from_bytes(record.payload, "little")
                failure = assertion_failure(
                    operation.text, operation.location, program, lane, operation.shape
                )
                break
            size = operation.element_bytes
            elements = [
                int.from_bytes(record.payload[at : at + size], "little")
                for at in range(0, len(record.payload), size or 1)
            ]
            lines += lines_of(
                program, operation.text, operation.type, operation.shape, elements, hex=operation.hex
            )
        return "".join(line + "\n" for line in lines), failure

    def _index_of(self, program: int) -> tuple[int, int, int]:
        rest, x = divmod(program, self._grid[0])
        z, y = divmod(rest, self._grid[1])
        return x, y, z

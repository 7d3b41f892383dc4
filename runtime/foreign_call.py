"""Launches that XLA asks for: machine code behind its foreign function interface, without Python and its
lock.

`XlaHandler` is one function for every kernel. XLA calls it with a *call frame*: addresses of the buffers,
and one attribute, a number. The number finds a `Plan`: the kernel's entry, its slots, how often it runs, and
which buffer each pointer is. Numbers are digests of what is launched, so a program that XLA kept for another
process does not find what it does not mean; the call fails with a message then.

The programs are a range that the calling thread and threads of XLA's own pool take chunks from, as in
`blocklang.runtime.pool`: tasks that come late find the range closed, and the caller waits only for those
inside. Each thread works in the usual floating-point mode, where XLA's flushes subnormals, and has its own
again afterwards.

The code itself is in `foreign_call_ir`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Sequence
from typing import NamedTuple

from blocklang.runtime.foreign_call_ir import ADD, ANSWER, MACHINES, MINOR, PLAN, SEED, SERVE, handler_ir
from blocklang.runtime.loader import LoadedObject, assemble


class Pointer(NamedTuple):
    """A pointer among the slots of a kernel.

    Attributes:
        slot: which one.
        buffer: the argument that it points to; of a result, -1 minus its number.
        strides: from item to item of the batch, in bytes, one for each level, the outermost first.
    """

    slot: int
    buffer: int
    strides: tuple[int, ...]


class Plan(NamedTuple):
    """Everything about a launch but the addresses of its buffers.

    Attributes:
        entry: address of the kernel's entry.
        slots: its argument slots; those of pointers are filled at each call.
        pointers: where these point.
        grid: three extents.
        batch: extents of the batch, outermost first; the kernel runs for each of its items.
        scratch_bytes: that a thread needs.
        copies: (argument, result, bytes): a result that starts as an argument is; -1 minus the number, too.
        arguments, results: how many buffers there are.
        threads: at most so many work.
    """

    entry: int
    slots: tuple[int, ...]
    pointers: tuple[Pointer, ...]
    grid: tuple[int, int, int]
    batch: tuple[int, ...]
    scratch_bytes: int
    copies: tuple[tuple[int, int, int], ...]
    arguments: int
    results: int
    threads: int


class XlaHandler:
    """The one handler of this process and the plans that it knows: kept for good, as XLA may call any.

    Attributes:
        address: of the handler, an `XLA_FFI_Handler`.
    """

    def __init__(self) -> None:
        machine = platform.machine()
        self._object = LoadedObject(assemble(handler_ir(machine)), [SERVE, ADD, SEED, ANSWER])
        self.address = self._object.address(SERVE)
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._object.address(SEED))(
            int.from_bytes(os.urandom(8), "little") >> 2
        )
        self._add = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._object.address(ADD))
        self._kept: dict[int, list[object]] = {}
        self._lock = threading.Lock()

    def answer(self, minor: int) -> None:
        """Say to be made for version 0.`minor` of the interface, or for the newest one that is known."""
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._object.address(ANSWER))(min(minor, MINOR))

    def add(self, number: int, plan: Plan) -> None:
        """Make a plan known under a number, unless it is."""
        with self._lock:
            if number in self._kept:
                return
            kept: list[object] = []

            def array(numbers: Sequence[int]) -> int:
                memory = (ctypes.c_int64 * max(len(numbers), 1))(*map(_signed, numbers))
                kept.append(memory)
                return ctypes.addressof(memory)

            grid = (ctypes.c_int32 * 3)(*plan.grid)
            kept.append(grid)
            programs = plan.grid[0] * plan.grid[1] * plan.grid[2]
            total = programs
            for extent in plan.batch:
                total *= extent
            fields = {
                "next": 0,
                "number": number,
                "entry": plan.entry,
                "programs": max(programs, 1),
                "total": total,
                "levels": len(plan.batch),
                "extents": array(plan.batch),
                "slots": len(plan.slots),
                "template": array(plan.slots),
                "pointers": len(plan.pointers),
                "sources": array([n for p in plan.pointers for n in (p.slot, p.buffer, *p.strides)]),
                "scratch": plan.scratch_bytes,
                "grid": ctypes.addressof(grid),
                "copies": len(plan.copies),
                "copied": array([n for copy in plan.copies for n in copy]),
                "arguments": plan.arguments,
                "results": plan.results,
                "threads": plan.threads,
                "spare": 0,
                "known": 0,
            }
            address = array([fields[name] for name in PLAN])
            self._kept[number] = kept
            self._add(address)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


_handler: XlaHandler | None = None
_lock = threading.Lock()


def is_supported() -> bool:
    """True if there is a handler for this machine."""
    return os.name == "posix" and platform.machine() in MACHINES


def shared_handler() -> XlaHandler:
    """The handler of this process, made when it is first asked for."""
    global _handler
    with _lock:
        if _handler is None:
            _handler = XlaHandler()
        return _handler


def _renew_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    if _handler is not None:
        _handler._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)

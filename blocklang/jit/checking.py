"""Launches that look for everything that is wrong with a kernel, and go on.

Inside `check_launches` a launch runs a checked version of its kernel: native code with the checks of the
debug mode and those of `blocklang.passes.check_races`, `check_unwritten` and `check_alignment`. Its programs
run one after another, in ascending order, on one thread. Results are those of the plain launch, but for
programs that an access outside of its array has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from blocklang.abi import SLOT_BYTES
from blocklang.diagnostics import CompilationError
from blocklang.emulation.placement import place_blocks
from blocklang.jit.recording import Launch, replace_launches
from blocklang.jit.specialisation import slots_of
from blocklang.ops.faults import (
    BOUNDS,
    CHECKS_FIRST,
    CHECKS_STATE,
    HIGH_OF,
    LOW_OF,
    NAN,
    OVERFLOW,
    STATE_COUNTERS,
    STATE_NAN,
    UNWRITTEN_OF,
    WORDS,
)
from blocklang.runtime.events import Fault
from blocklang.runtime.findings import CAPACITY, Finding, Findings, finding_of
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.watching import Watched, watched_behind
from blocklang.runtime.words import WordMemory
from blocklang.target import Device

if TYPE_CHECKING:
    from blocklang.compiler import CompiledKernel


@contextmanager
def check_launches(device: Device | None = None, *, nan: bool = True) -> Iterator[Findings]:
    """Check every launch of this process while the context lasts.

    with check_launches() as findings:
        main()
    assert not findings.items

    Args:
        device: a kernel that does not fit it is a finding.
        nan: operations that make a NaN of numbers are findings, if the launch stores a NaN.
    """
    checker = _Checker(device, nan)
    with replace_launches(checker.run):
        yield checker.findings


@dataclass(frozen=True)
class _Checked:
    """A checked version in memory, and the plain one that it stands for, kept so that its id stays taken."""

    plain: Any
    kernel: CompiledKernel
    loaded: LoadedKernel


class _Checker:
    def __init__(self, device: Device | None, nan: bool) -> None:
        self.findings = Findings()
        self._device = device
        self._nan = nan
        self._words = WordMemory()
        self._lock = threading.RLock()
        self._versions: dict[tuple[int, frozenset[str]], _Checked] = {}

    def run(self, launch: Launch) -> None:
        with self._lock:
            self.findings.launches += 1
            self.findings.kernels.add(launch.function.location)
            self._run(launch)

    def _run(self, launch: Launch) -> None:
        watched = {n: w for n, a in launch.arrays.items() if (w := watched_behind(a)) is not None}
        for one in set(watched.values()):
            one.refresh()
        checked = self._version(launch, frozenset(n for n, w in watched.items() if w.flags.any()))
        abi = checked.kernel.abi
        state = np.zeros(STATE_COUNTERS + len(abi.events), np.int64)
        slots = self._slots(launch, checked, watched, state)
        found: list[Fault] = []
        try:
            checked.loaded.launch(slots, launch.grid, 1, launch.arrays, found)
        finally:
            self._note(launch, checked, found, state)

    def _slots(
        self, launch: Launch, checked: _Checked, watched: dict[str, Watched], state: np.ndarray[Any, Any]
    ) -> bytes:
        """The arguments of the checked version: the user's, and those of the checks."""
        given = launch.compiled.abi.argument_names
        values = {
            name: int.from_bytes(launch.slots[at * SLOT_BYTES : (at + 1) * SLOT_BYTES], "little")
            for at, name in enumerate(given)
        }
        system = checked.kernel.abi.bounds
        values |= self._words.addresses(
            {argument: pair for argument, pair in system.items() if pair[0] in WORDS}, launch.arrays
        )
        for argument, (what, array) in system.items():
            if what in (LOW_OF, HIGH_OF):
                values[argument] = launch.arrays[array].byte_range()[what == HIGH_OF]
            elif what == UNWRITTEN_OF:
                values[argument] = watched[array].flag_address(launch.arrays[array])
            elif what == CHECKS_FIRST:
                values[argument] = self._words.number_programs(prod(launch.grid))
            elif what == CHECKS_STATE:
                values[argument] = state.ctypes.data
        return slots_of([values[name] for name in checked.kernel.abi.argument_names])

    def _version(self, launch: Launch, watched: frozenset[str]) -> _Checked:
        from blocklang.compiler import compile_kernel  # loads llvmlite

        key = (id(launch.compiled), watched)
        known = self._versions.get(key)
        if known is None:
            asked = launch.specialisation
            switches = asked.switches._replace(debug=True)
            kernel = launch.function.block_ir(asked._replace(switches=switches), hints=True)
            if asked.alias != "disjoint":
                kernel.attributes["alias"] = "unknown"  # so may the words of arrays that are only read
            for argument, attributes in zip(kernel.args, kernel.argument_attributes, strict=True):
                if argument.name in watched:
                    attributes["watched"] = True
            options = switches.compile_options()._replace(nan=self._nan, audit=True)
            compiled = compile_kernel(kernel, options=options)
            known = _Checked(launch.compiled, compiled, LoadedKernel(compiled.abi, compiled.object_code))
            self._versions[key] = known
            self._check_capacity(launch)
        return known

    def _check_capacity(self, launch: Launch) -> None:
        from blocklang.compiler import compile_counted

        if self._device is None:
            return
        try:
            place_blocks(compile_counted(launch.compiled.source, self._device).block, self._device)
        except CompilationError as error:
            name = launch.function.__name__
            self.findings.add(Finding(CAPACITY, error, name, self.findings.launches))

    def _note(
        self, launch: Launch, checked: _Checked, found: list[Fault], state: np.ndarray[Any, Any]
    ) -> None:
        counts = _counts(checked, state)
        if not state[STATE_NAN]:  # those of padding often go nowhere
            found = [f for f in found if f.operation.fault is None or f.operation.fault.kind != NAN]
        for fault in found:
            self.findings.add(
                finding_of(
                    fault,
                    launch.function.__name__,
                    self.findings.launches,
                    launch.grid,
                    launch.arrays,
                    counts.get(id(fault.operation), 1),
                )
            )


def _counts(checked: _Checked, state: np.ndarray[Any, Any]) -> dict[int, int]:
    """How often each check that does not end its program has failed, by the identity of its operation."""
    counted = [
        event
        for event in checked.kernel.abi.events
        if event.fault is not None and event.fault.kind not in (BOUNDS, OVERFLOW)
    ]
    return {id(event): int(count) for event, count in zip(counted, state[STATE_COUNTERS:], strict=False)}

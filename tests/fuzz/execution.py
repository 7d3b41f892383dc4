"""Run one case in every form and compare the memory that it leaves.

The forms: a source's own lines run one by one, Block IR, abstract Tile IR and placed Tile IR under the
interpreter, and machine code. Two memories are equal if they are equal to the bit, a NaN being equal to
every NaN.

Machine code runs with every array between pages that cannot be accessed, in the middle of bytes that must
not change (canaries), with scratch memory full of rubbish, and in a process of its own: a crash or an
endless loop is a failure like any other.

Under emulation a kernel counts what it moves, for a device that is not here: it leaves what it leaves without
counters.

In debug mode all forms from the insertion of the checks on report a fault, or none does, and then they leave
what they leave without checks. A source's own lines, whose checks are others, find every fault that the
forms report; and if the ends of the memories are said not to be there, the checks report what leaves them.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blocklang.abi import LAUNCH_NUMBER, SCRATCH_ALIGNMENT, SLOT_BYTES
from blocklang.codegen.kernel import emit_module
from blocklang.codegen.objects import compile_module
from blocklang.diagnostics import CheckError, InterpreterError
from blocklang.interpreter import LaunchArgument, interpret_launch, run_kernel
from blocklang.interpreter.dtypes import memory_dtype_of
from blocklang.interpreter.run import argument_data
from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import PointerType, ScalarType
from blocklang.ir.verifier import verify
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import HIGH_OF, LOW_OF
from blocklang.ops.scan import MapElementwise
from blocklang.passes.pipeline import CHECKS, EMULATED, run_device_passes, run_pipeline
from blocklang.passes.plan_memory import scratch_bytes
from blocklang.passes.schedule import Schedule, choose_schedule
from blocklang.runtime.loader import LoadedObject
from blocklang.target import Target, find_device, target_for
from tests.fuzz.cases import Bytes, Case, Memory, Pointer
from tests.fuzz.sources import source_of

PAGE = mmap.PAGESIZE
SECONDS = 20  # for a case's machine code
EAGER = "the source's own lines"  # the stage at which they differ
COUNTED = "machine code that counts"
_CANARY = 0xC5
Chooser = Callable[[Kernel, Target], Schedule]
Memories = list[Bytes]


class InvalidCase(Exception):
    """The kernel leaves its arrays: nothing is promised about it."""


@dataclass(frozen=True)
class Failure:
    """A form that does not agree with Block IR.

    Attributes:
        stage: the form: a pass, "machine code", or the step that raised.
        reason: what differs, in words.
    """

    stage: str
    reason: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.reason}"


# ---- memory ----


class GuardedMemory:
    """Bytes between two inaccessible pages, shared with child processes.

    The contents stand at the end of the accessible pages, or at their start: accesses beyond that end are
    seen.
    """

    def __init__(
        self, contents: Bytes, *, at_end: bool = True, misaligned: int = 0, alignment: int = 8
    ) -> None:
        size = len(contents)
        pages = -(-(size + misaligned + alignment) // PAGE) or 1
        self._map = mmap.mmap(-1, (pages + 2) * PAGE)
        self._everything = np.frombuffer(self._map, np.uint8)
        self._protect(0)
        self._protect((pages + 1) * PAGE)
        self._inner = self._everything[PAGE : (pages + 1) * PAGE]
        self._inner[:] = _CANARY
        start = pages * PAGE - size if at_end else 0
        start -= (start - misaligned) % alignment if at_end else -misaligned
        self._start, self._size = start, size
        self.bytes[:] = contents

    def _protect(self, offset: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        address = self._everything.ctypes.data + offset
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    @property
    def bytes(self) -> Bytes:
        return self._inner[self._start : self._start + self._size]

    @property
    def address(self) -> int:
        return int(self._inner.ctypes.data) + self._start

    def canaries_are_whole(self) -> bool:
        """True if no byte around the contents has changed."""
        before, after = self._inner[: self._start], self._inner[self._start + self._size :]
        return bool((before == _CANARY).all() and (after == _CANARY).all())


@dataclass(frozen=True)
class PointedArray:
    """An array for the interpreter: a pointer into the middle of some bytes."""

    element: ScalarType
    address: int
    low: int
    high: int
    shape: tuple[int, ...] = ()
    writable: bool = True

    def byte_range(self) -> tuple[int, int]:
        return self.low, self.high


def interpret(kernel: Kernel, case: Case, *, missing: int = 0) -> Memories:
    """What `kernel`, at any level, leaves in the memories of `case`.

    Args:
        missing: so many elements at the end of each memory are said not to be there.

    Raises:
        CheckError: an access lies outside of the memories.
    """
    memories = [m.contents() for m in case.memories]
    arguments = [_interpreter_argument(a, memories, case.memories, missing) for a in case.arguments]
    run_kernel(kernel, arguments, case.grid)
    return memories


def _interpreter_argument(
    argument: Any, memories: Memories, plans: Sequence[Memory], missing: int = 0
) -> Any:
    if not isinstance(argument, Pointer):
        return argument
    data, element = memories[argument.memory], plans[argument.memory].type
    low, count = int(data.ctypes.data), max(len(data) // element.bytes - missing, 0)
    start, high = low + argument.offset * element.bytes, low + count * element.bytes
    return PointedArray(element, start, low, high, (count,))


def run_source(case: Case, *, debug: bool = False) -> Memories:
    """What the user's own lines leave, run one by one.

    Raises:
        CheckError: in debug mode, a fault.
    """
    kernel = parse_kernel(case.kernel)
    memories = [m.contents() for m in case.memories]
    arguments: dict[str, LaunchArgument] = {n: LaunchArgument(v) for n, v in case.constants}
    for formal, argument in zip(kernel.args, case.arguments, strict=True):
        assert isinstance(formal.type, (ScalarType, PointerType))
        value = _interpreter_argument(argument, memories, case.memories)
        arguments[formal.name] = LaunchArgument(value, formal.type)
    interpret_launch(source_of(case.source), arguments, case.grid, debug=debug)
    return memories


# ---- comparison ----


def difference(case: Case, expected: Memories, found: Memories) -> str:
    """Where two outcomes differ, in words; '' if nowhere."""
    for number, (plan, one, other) in enumerate(zip(case.memories, expected, found, strict=True)):
        differs = _different_elements(plan.type, one, other)
        if differs.size:
            at = int(differs[0])
            dtype = memory_dtype_of(plan.type)
            wanted, got = one.view(dtype)[at], other.view(dtype)[at]
            what = f"memory {number} ({plan.element}), element {at} of {plan.count}"
            return f"{what} is {got!r}, not {wanted!r} ({differs.size} differ)"
    return ""


def _different_elements(type_: ScalarType, one: Bytes, other: Bytes) -> Any:
    size = type_.bytes
    differs = (one.reshape(-1, size) != other.reshape(-1, size)).any(axis=1)
    if type_.is_float:
        dtype = memory_dtype_of(type_)
        with np.errstate(all="ignore"):
            differs &= ~(np.isnan(one.view(dtype)) & np.isnan(other.view(dtype)))
    return np.flatnonzero(differs)


# ---- machine code ----


def run_native(
    kernel: Kernel, target: Target, case: Case, *, isolate: bool = True
) -> Memories | Failure | None:
    """Compile a placed kernel for `target` and run it on the memories of `case`.

    Returns:
        What it leaves; None if it reports a fault.
    """
    code = compile_module(emit_module(kernel, target, "fuzzed"), target).object_code
    memories = [
        GuardedMemory(m.contents(), at_end=bool(m.seed % 2), misaligned=m.misaligned, alignment=m.type.bytes)
        for m in case.memories
    ]
    size = -(-max(scratch_bytes(kernel), 1) // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
    scratch = GuardedMemory(np.full(size - LAUNCH_NUMBER, 0xA7, np.uint8), alignment=SCRATCH_ALIGNMENT)
    scratch.bytes[:-LAUNCH_NUMBER] = 0x5C  # no launch had this number: the rubbish is not taken for its own
    log = GuardedMemory(np.zeros(2 * SLOT_BYTES, np.uint8))
    slots = _slots(kernel, case, memories, log)
    grid = (ctypes.c_int32 * 3)(*case.grid, *[1] * (3 - len(case.grid)))

    def call() -> None:
        loaded = LoadedObject(code, ["fuzzed"])
        entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)
        programs = int(np.prod(case.grid))
        entry(loaded.address("fuzzed"))(slots.ctypes.data, grid, 0, programs, scratch.address - LAUNCH_NUMBER)

    if isolate:
        if problem := _in_child(call):
            return Failure("machine code", problem)
    else:
        call()
    for number, memory in enumerate(memories):
        if not memory.canaries_are_whole():
            return Failure("machine code", f"bytes around memory {number} were written")
    if not scratch.canaries_are_whole():
        return Failure("machine code", "bytes around the scratch memory were written")
    return None if log.bytes.any() else [m.bytes for m in memories]


def _slots(kernel: Kernel, case: Case, memories: Sequence[GuardedMemory], log: GuardedMemory) -> Bytes:
    slots = np.full((len(kernel.args) + 1, SLOT_BYTES), 0xEE, np.uint8)  # upper bytes mean nothing
    slots[-1] = np.frombuffer(np.uint64(log.address).tobytes(), np.uint8)
    numbers = {formal.name: number for number, formal in enumerate(kernel.args)}
    for number, attributes in enumerate(kernel.argument_attributes):
        for end in (LOW_OF, HIGH_OF):
            if end in attributes:
                pointed = case.arguments[numbers[attributes[end]]]
                assert isinstance(pointed, Pointer)
                memory = memories[pointed.memory]
                place = memory.address + (len(memory.bytes) if end == HIGH_OF else 0)
                slots[number] = np.frombuffer(np.uint64(place).tobytes(), np.uint8)
    for slot, formal, argument in zip(slots, kernel.args, case.arguments, strict=False):
        if isinstance(argument, Pointer):
            place = (
                memories[argument.memory].address
                + argument.offset * case.memories[argument.memory].type.bytes
            )
            slot[:] = np.frombuffer(np.uint64(place).tobytes(), np.uint8)
        else:
            assert isinstance(formal.type, ScalarType)
            data = argument_data(formal.name, formal.type, argument).tobytes()
            slot[: len(data)] = np.frombuffer(data, np.uint8)
    return slots


_BUSY = 30  # a machine that does much else, or pauses a process, is given so many times as long
OUT_OF_TIME = (signal.SIGPROF, signal.SIGALRM)


def end_after(seconds: int) -> None:
    """End this process when it has computed for so long, by one of OUT_OF_TIME."""
    for out in OUT_OF_TIME:
        signal.signal(out, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_BUSY * seconds)


def _in_child(call: Callable[[], None]) -> str:
    """Run `call` in a child process; the way it died in words, '' if it ended well."""
    child = os.fork()
    if child == 0:
        end_after(SECONDS)
        try:
            call()
        except BaseException:  # noqa: BLE001  (the child must never return into its parent's frames)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        died = signal.Signals(os.WTERMSIG(status))
        return f"ran longer than {SECONDS} s" if died in OUT_OF_TIME else f"died of {died.name}"
    return "" if os.WEXITSTATUS(status) == 0 else "could not be loaded"


# ---- the check ----


def host_supports(cpu: str) -> bool:
    """True if this machine runs code for `cpu`."""
    host = target_for("host")
    wanted = target_for(cpu)
    return host.triple == wanted.triple and all(
        (
            host.vector_bytes >= wanted.vector_bytes,
            host.has_fma or not wanted.has_fma,
            host.has_f16c or not wanted.has_f16c,
        )
    )


@dataclass(frozen=True)
class Check:
    """How to check cases.

    Attributes:
        cpu: code is made for this level.
        schedule: chooses the schedule.
        every_pass: interpret the kernel after every pass, not only at the end of each level.
        isolate: run machine code in a process of its own.
        forms: verify and interpret the forms between Block IR and machine code, too. Without it they are
            looked at only if machine code does not agree, to say where that begins.
        debug: check the kernel in debug mode, too.
        emulated: check the kernel with the counters of an emulated device, too.
        plain: check the kernel as it is.
    """

    cpu: str = "host"
    schedule: Chooser = choose_schedule
    every_pass: bool = False
    isolate: bool = True
    forms: bool = True
    debug: bool = False
    emulated: bool = False
    plain: bool = True

    def __call__(self, case: Case) -> Failure | None:
        """Compare all forms of `case`.

        Raises:
            InvalidCase: the kernel leaves its arrays.
        """
        kernel = parse_kernel(case.kernel)
        verify(kernel)
        try:
            expected = interpret(kernel, case)
        except InterpreterError as error:
            raise InvalidCase(str(error)) from error
        if case.source and (failure := _eager_failure(case, expected)):
            return failure
        if self.emulated and (failure := self._emulated_failure(kernel, case, expected)):
            return failure
        if not self.plain:
            return None
        for switches in ((), (CHECKS,)) if self.debug else ((),):
            failure = self._compiled_failure(kernel, case, expected, switches)
            if failure is None:
                continue
            if self.forms:
                return failure
            thorough = replace(self, forms=True)
            return thorough._compiled_failure(kernel, case, expected, switches) or failure
        return None

    def _emulated_failure(self, kernel: Kernel, case: Case, expected: Memories) -> Failure | None:
        """Machine code that counts for a device."""
        target = target_for(self.cpu)
        try:
            run = run_pipeline(
                clone_kernel(kernel), target, schedule=self.schedule, switches=(EMULATED,), share=False
            )
            counts = run_device_passes(run.kernel, find_device("trn2"))
            counters = Memory("i64", max(counts.counters * math.prod(case.grid), 1), "ramp")
            pointer = Pointer(len(case.memories))
            counted = replace(case, arguments=(*case.arguments, pointer), memories=(*case.memories, counters))
            found = run_native(run.kernel, target, counted, isolate=self.isolate)
        except Exception as error:  # noqa: BLE001  (whatever a pass raises is what the fuzzer looks for)
            return Failure(COUNTED, f"{type(error).__name__}: {error}"[:2000])
        if isinstance(found, Failure):
            return Failure(COUNTED, found.reason)
        reason = "reports a fault" if found is None else difference(case, expected, found[:-1])
        return Failure(COUNTED, reason) if reason else None

    def _compiled_failure(
        self, kernel: Kernel, case: Case, expected: Memories, switches: tuple[str, ...]
    ) -> Failure | None:
        comparison = _Comparison(case, expected, self.every_pass, self.forms)
        target = target_for(self.cpu)
        try:
            run = run_pipeline(
                clone_kernel(kernel),
                target,
                schedule=self.schedule,
                verify_each=self.forms,
                observer=comparison.observe,
                switches=switches,
            )
            found = run_native(run.kernel, target, case, isolate=self.isolate)
        except _Disagreement as stop:
            return stop.failure
        except Exception as error:  # noqa: BLE001  (whatever a pass raises is what the fuzzer looks for)
            return Failure(comparison.after, f"then {type(error).__name__}: {error}"[:2000])
        if isinstance(found, Failure):
            return found
        if (found is None) != bool(comparison.fault):
            what = "reports a fault" if found is None else f"does not report: {comparison.fault}"
            return Failure("machine code", what)
        reason = "" if found is None else difference(case, expected, found)
        return Failure("machine code", reason) if reason else None


def _eager_failure(case: Case, expected: Memories) -> Failure | None:
    try:
        reason = difference(case, expected, run_source(case))
    except Exception as error:  # noqa: BLE001  (whatever it raises is what the fuzzer looks for)
        reason = f"{type(error).__name__}: {error}"
    return Failure(EAGER, reason) if reason else None


def _fault_of(kernel: Kernel, case: Case, missing: int) -> CheckError | None:
    """The first fault in memories of which elements are missing."""
    try:
        interpret(kernel, case, missing=missing)
    except CheckError as error:
        return error
    return None


class _Disagreement(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Comparison:
    """Observes a pipeline and compares its forms."""

    LAST = ("lower_to_tile", "plan_memory")
    CHECKED = "insert_checks"

    def __init__(self, case: Case, expected: Memories, every_pass: bool, forms: bool) -> None:
        self.fault = ""  # what the debug mode reports
        self.case = case
        self.expected = expected
        self.every_pass = every_pass
        self.forms = forms
        self.after = "start"

    def observe(self, name: str, kernel: Kernel) -> None:
        self.after = name
        is_checked = name == self.CHECKED and any(isinstance(op, ReportFault) for op in kernel.walk())
        if not is_checked and (not self.forms or (not self.every_pass and name not in self.LAST)):
            return
        fault = reason = ""
        try:
            reason = difference(self.case, self.expected, interpret(kernel, self.case))
        except CheckError as error:
            fault = str(error)
        except InterpreterError as error:
            reason = f"{error}"
        if is_checked:
            self.fault = fault
            reason = reason or self._false_alarm() or self._missed(kernel)
        elif fault != self.fault:
            reason = f"reports {fault or 'nothing'}, not {self.fault or 'nothing'}"
        if reason:
            raise _Disagreement(Failure(name, reason))

    def _missed(self, checked: Kernel) -> str:
        """How the checks fail if the ends of the memories are said not to be there: each access there must
        be reported, as the interpreter's own test of addresses does; '' if all is well.
        """
        plain = parse_kernel(self.case.kernel)
        if any(isinstance(op, MapElementwise) for op in plain.walk()):  # it may load, unchecked
            return ""
        for missing in (1, 3, max(m.count for m in self.case.memories) // 2):
            seen, reported = (_fault_of(kernel, self.case, missing) for kernel in (plain, checked))
            if reported is not None and not reported.notes:  # the interpreter's own test came first
                return f"without the last {missing} elements it does not report {reported}"
            if reported is not None and seen is None and not self.fault:
                return f"without the last {missing} elements it reports {reported}"
        return ""

    def _false_alarm(self) -> str:
        """Why the user's own lines see no fault, if a check reports one; '' if all is well."""
        if not self.fault or not self.case.source:
            return ""
        try:
            run_source(self.case, debug=True)
        except CheckError:
            return ""
        return f"reports what the source's own lines do not: {self.fault}"

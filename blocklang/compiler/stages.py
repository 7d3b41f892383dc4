"""The stages in order, run: `compile_kernel`, `compile_counted`, and the texts of `CompiledKernel`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blocklang.abi import AccessCounts, EventOperation, FaultOperation, KernelAbi
from blocklang.codegen.events import events_of
from blocklang.codegen.kernel import emit_module
from blocklang.codegen.objects import MachineCode, compile_module
from blocklang.compiler.compiled import CompiledKernel, CompileOptions
from blocklang.depth import deep_recursion
from blocklang.diagnostics import SlowCompilationWarning
from blocklang.ir.core import Kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import I32, PointerType, ScalarType, element_type, shape_of
from blocklang.ops.events import DeviceAssert, DevicePrint, Event, ReportFault
from blocklang.ops.faults import SYSTEM_ARGUMENTS
from blocklang.passes.pipeline import PipelineRun, run_block_passes, run_device_passes, run_pipeline
from blocklang.passes.plan_memory import memory_plan, scratch_bytes
from blocklang.passes.schedule import choose_schedule
from blocklang.target import Device, Target, current_target

PATIENCE_SECONDS = 5.0

_USUAL = CompileOptions()


@dataclass(frozen=True)
class Stages:
    """Every form of one kernel, as text.

    Attributes:
        block, tile, placed: the IR at the end of each level.
        schedule: the schedule between tile and placed.
        after: the IR after each pass, by name, in order.
        seconds: how long each pass took.
    """

    block: str
    tile: str
    placed: str
    schedule: str
    after: dict[str, str]
    seconds: dict[str, float]


@dataclass(frozen=True)
class CountedKernel:
    """A kernel's machine code that also counts what it moves, for an emulated device.

    Attributes:
        abi: as of the plain kernel, with one more argument: the address of the counters.
        object_code: a relocatable object file that defines the entry.
        counts: what the counters mean.
        block: the kernel as the passes for whole blocks leave it.
    """

    abi: KernelAbi
    object_code: bytes
    counts: AccessCounts
    block: Kernel


def _target(options: CompileOptions) -> Target:
    return options.target or current_target()


def _lower(
    source: Kernel,
    options: CompileOptions,
    observer: Callable[[str, Kernel], None] | None,
    *,
    share: bool = True,
) -> PipelineRun:
    return run_pipeline(
        clone_kernel(source),
        _target(options),
        schedule=options.schedule or choose_schedule,
        verify_each=options.verify,
        observer=observer,
        switches=options.switches,
        share=share,
    )


def write_forms(source: Kernel, options: CompileOptions) -> Stages:
    """Every form of a kernel of level block, as text."""
    after: dict[str, str] = {}
    run = _lower(source, options, lambda name, kernel: after.__setitem__(name, str(kernel)))
    names = list(after)
    return Stages(
        block=after[names[names.index("lower_to_tile") - 1]],
        tile=after["lower_to_tile"],
        placed=after[names[-1]],
        schedule=str(run.schedule),
        after=after,
        seconds=run.seconds,
    )


def write_llvm_ir(source: Kernel, options: CompileOptions, symbol: str) -> str:
    """The LLVM IR of a kernel of level block, before LLVM's passes."""
    run = _lower(source, options, None)
    return emit_module(run.kernel, _target(options), symbol)


def compile_llvm_ir(text: str, options: CompileOptions) -> MachineCode:
    """What LLVM makes of a module, assembly included."""
    return compile_module(text, _target(options), assembly=True)


@deep_recursion()
def compile_kernel(
    kernel: Kernel, *, options: CompileOptions = _USUAL, symbol: str | None = None
) -> CompiledKernel:
    """Compile a kernel of level block to machine code. The kernel is not changed.

    Args:
        symbol: of the entry; None makes it from the kernel's name.

    Raises:
        CompilationError: the kernel asks for what this target cannot do.
    """
    target = _target(options)
    run = _lower(kernel, options, None)
    symbol = symbol or f"blocklang_{kernel.name}"
    seconds = {"frontend": kernel.frontend_seconds, **run.seconds}
    started = time.perf_counter()
    text = emit_module(run.kernel, target, symbol)
    seconds["emit_llvm"] = time.perf_counter() - started
    code = compile_module(text, target)
    seconds |= code.seconds
    warn_if_slow(kernel, seconds)
    return CompiledKernel(_abi(run.kernel, symbol), code.object_code, lambda: kernel, options, seconds)


def warn_if_slow(kernel: Kernel, seconds: Mapping[str, float]) -> None:
    """Warn of a compilation that a person waits for, and name the stage that took most of it."""
    total, longest = sum(seconds.values()), max(seconds, key=seconds.__getitem__)
    if total > PATIENCE_SECONDS:
        warnings.warn(
            f"{kernel.location}: compiling {kernel.name} took {total:.1f} s, {seconds[longest]:.1f} s of it "
            f"{longest}; `blocklang ir --time` lists every stage",
            SlowCompilationWarning,
            stacklevel=2,
        )


@deep_recursion()
def compile_counted(kernel: Kernel, device: Device, *, options: CompileOptions = _USUAL) -> CountedKernel:
    """Compile a kernel of level block as `compile_kernel` does, over the same memory plan, with counters.

    Checks that the options ask for are in the code, and not in `CountedKernel.block`: a device has none.
    """
    options = options._replace(emulated=True)
    placed = _lower(kernel, options, None, share=False).kernel  # every program counts what it packs
    block = clone_kernel(kernel)
    run_block_passes(block, options._replace(checks=False, nan=False).switches)
    counts = run_device_passes(placed, device)
    symbol = f"blocklang_{kernel.name}_counted"
    code = compile_module(emit_module(placed, _target(options), symbol), _target(options))
    return CountedKernel(_abi(placed, symbol), code.object_code, counts, block)


def _abi(kernel: Kernel, symbol: str) -> KernelAbi:
    types = tuple(t for a in kernel.args if isinstance(t := a.type, (ScalarType, PointerType)))
    assert len(types) == len(kernel.args)
    return KernelAbi(
        name=symbol,
        argument_names=tuple(a.name for a in kernel.args),
        argument_types=types,
        written=_written(kernel),
        scratch_bytes=scratch_bytes(kernel),
        buffers=memory_plan(kernel),
        events=tuple(map(_event, events_of(kernel))),
        bounds=_bounds(kernel),
    )


def _bounds(kernel: Kernel) -> dict[str, tuple[str, str]]:
    """The arguments that checks have and the user did not write."""
    return {
        argument.name: (end, attributes[end])
        for argument, attributes in zip(kernel.args, kernel.argument_attributes, strict=True)
        for end in SYSTEM_ARGUMENTS
        if end in attributes
    }


def _event(op: Event) -> EventOperation:
    """What the launching thread must know of a print, an assertion or a check."""
    if isinstance(op, DeviceAssert):
        failing = op.failing.type
        assert isinstance(failing, ScalarType)
        return EventOperation(True, op.message, failing, op.shape, False, op.location)
    if isinstance(op, ReportFault):
        fault = FaultOperation(op.kind, op.action, op.size, op.arrays, len(op.details), op.places)
        return EventOperation(False, "", I32, op.shape, False, op.location, fault)
    assert isinstance(op, DevicePrint)
    if op.value is None:
        return EventOperation(False, op.title, None, (), op.hex, op.location)
    type_ = op.value.type
    return EventOperation(False, op.title, element_type(type_), shape_of(type_), op.hex, op.location)


def _written(kernel: Kernel) -> tuple[bool, ...]:
    """Per argument, whether a store or an atomic may go through it."""
    from blocklang.analysis.memory_hazards import base_pointer
    from blocklang.ir.declaration import Effect

    writers = [op for op in kernel.walk() if Effect.WRITE in op.effects]
    bases = {base_pointer(op.segment("pointer")[0]) for op in writers}
    unknown = None in bases
    return tuple(isinstance(a.type, PointerType) and (unknown or a in bases) for a in kernel.args)

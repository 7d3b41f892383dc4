"""The stages in order: Block IR in, machine code out.

    Block IR ─ passes ─▶ Tile IR ─ schedule, place ─▶ placed Tile IR ─ codegen ─▶ LLVM IR ─▶ object code

`compile_kernel` is what the jit calls. Everything a person may want to read (the text of each stage,
assembly, timings) is produced when it is asked for, by running the stages again, so that an ordinary
compilation pays for nothing that nobody reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from blocklang.abi import AccessCounts, EventOperation, FaultOperation, KernelAbi, SpaceUsage
from blocklang.codegen.events import events_of
from blocklang.codegen.kernel import emit_module
from blocklang.codegen.objects import MachineCode, compile_module
from blocklang.depth import deep_recursion
from blocklang.ir.core import Kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import I32, PointerType, ScalarType, element_type, shape_of
from blocklang.lazy import cached_property
from blocklang.ops.events import DeviceAssert, DevicePrint, Event, ReportFault
from blocklang.ops.faults import HIGH_OF, LOW_OF
from blocklang.passes.pipeline import (
    CHECKS,
    FP_FUSION,
    NAN,
    POISON,
    PipelineRun,
    run_device_passes,
    run_pipeline,
)
from blocklang.passes.plan_memory import memory_plan, scratch_bytes
from blocklang.passes.schedule import Schedule, choose_schedule
from blocklang.target import Device, Target, current_target


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Attributes:
        target: the CPU; None for the host, or what BLOCKLANG_CPU names.
        schedule: makes the schedule; the default derives it from the kernel and the target.
        verify: check the IR after every pass.
        enable_fp_fusion: `a * b + c` of floats is rounded once (`blocklang.passes.fuse_multiply_adds`).
        checks: report accesses that leave their array (`blocklang.passes.insert_checks`).
        nan: report a NaN that is made of numbers (`blocklang.passes.check_nan`).
        poison: masked lanes of loads hold what shows (`blocklang.passes.poison_masked_lanes`).
    """

    target: Target | None = None
    schedule: Callable[[Kernel, Target], Schedule] = choose_schedule
    verify: bool = False
    enable_fp_fusion: bool = False
    checks: bool = False
    nan: bool = False
    poison: bool = False

    @property
    def switches(self) -> tuple[str, ...]:
        """Which optional passes run."""
        chosen = {
            FP_FUSION: self.enable_fp_fusion,
            CHECKS: self.checks,
            NAN: self.nan,
            POISON: self.poison,
        }
        return tuple(name for name, is_on in chosen.items() if is_on)


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


@dataclass
class CompiledKernel:
    """A kernel's machine code, and what a launch and a reader need to know about it.

    Attributes:
        abi: the entry's symbol, arguments and memory plan.
        object_code: a relocatable object file that defines the entry.
        source: the Block IR it was compiled from.
        seconds: how long each stage took.
    """

    abi: KernelAbi
    object_code: bytes = field(repr=False)
    source: Kernel = field(repr=False)
    options: CompileOptions = field(repr=False)
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def forms(self) -> Stages:
        """All IR forms as text."""
        after: dict[str, str] = {}
        run = _lower(self.source, self.options, lambda name, kernel: after.__setitem__(name, str(kernel)))
        names = list(after)
        return Stages(
            block=after[names[names.index("lower_to_tile") - 1]],
            tile=after["lower_to_tile"],
            placed=after[names[-1]],
            schedule=str(run.schedule),
            after=after,
            seconds=run.seconds,
        )

    @property
    def stages(self) -> dict[str, str]:
        """The text of each level and the schedule, by name."""
        forms = self.forms
        return {"block": forms.block, "tile": forms.tile, "placed": forms.placed, "schedule": forms.schedule}

    @cached_property
    def llvm_ir(self) -> str:
        """The LLVM IR that the code generator wrote, before LLVM's passes."""
        run = _lower(self.source, self.options, None)
        return emit_module(run.kernel, _target(self.options), self.abi.name)

    @cached_property
    def machine_code(self) -> MachineCode:
        return compile_module(self.llvm_ir, _target(self.options), assembly=True)

    @property
    def optimised_llvm_ir(self) -> str:
        """The LLVM IR after LLVM's passes."""
        return self.machine_code.optimised

    @property
    def assembly(self) -> str:
        """The assembly of the object code."""
        return self.machine_code.assembly


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
        schedule=options.schedule,
        verify_each=options.verify,
        observer=observer,
        switches=options.switches,
        share=share,
    )


@deep_recursion()
def compile_kernel(kernel: Kernel, *, options: CompileOptions = CompileOptions()) -> CompiledKernel:
    """Compile a kernel of level block to machine code. The kernel is not changed.

    Raises:
        CompilationError: the kernel asks for what this target cannot do.
    """
    target = _target(options)
    run = _lower(kernel, options, None)
    symbol = f"blocklang_{kernel.name}"
    seconds = dict(run.seconds)
    started = time.perf_counter()
    text = emit_module(run.kernel, target, symbol)
    seconds["emit_llvm"] = time.perf_counter() - started
    started = time.perf_counter()
    code = compile_module(text, target)
    seconds["llvm"] = time.perf_counter() - started
    return CompiledKernel(_abi(run.kernel, symbol), code.object_code, kernel, options, seconds)


@dataclass(frozen=True)
class CountedKernel:
    """A kernel's machine code that also counts what it moves, for an emulated device.

    Attributes:
        abi: as of the plain kernel, with one more argument: the address of the counters.
        object_code: a relocatable object file that defines the entry.
        counts: what the counters mean.
        usage: how full each on-chip space of the device gets.
    """

    abi: KernelAbi
    object_code: bytes
    counts: AccessCounts
    usage: tuple[SpaceUsage, ...]


@deep_recursion()
def compile_counted(
    kernel: Kernel, device: Device, *, options: CompileOptions = CompileOptions()
) -> CountedKernel:
    """Compile a kernel of level block as `compile_kernel` does, over the same memory plan, with counters.

    Raises:
        CompilationError: the kernel's buffers do not fit the device.
    """
    placed = _lower(kernel, options, None, share=False).kernel  # every program counts what it packs
    run = run_device_passes(placed, device)
    symbol = f"blocklang_{kernel.name}_counted"
    code = compile_module(emit_module(placed, _target(options), symbol), _target(options))
    return CountedKernel(_abi(placed, symbol), code.object_code, run.counts, run.usage)


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
    """The arguments that are the ends of arrays."""
    return {
        argument.name: (end, attributes[end])
        for argument, attributes in zip(kernel.args, kernel.argument_attributes, strict=True)
        for end in (LOW_OF, HIGH_OF)
        if end in attributes
    }


def _event(op: Event) -> EventOperation:
    """What the launching thread must know of a print, an assertion or a check."""
    if isinstance(op, DeviceAssert):
        failing = op.failing.type
        assert isinstance(failing, ScalarType)
        return EventOperation(True, op.message, failing, op.shape, False, op.location)
    if isinstance(op, ReportFault):
        fault = FaultOperation(op.kind, op.action, op.size, op.arrays, len(op.details))
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

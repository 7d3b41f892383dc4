"""What the compiler returns: machine code, and what a launch and a reader need to know about it.

Everything a person may want to read (the text of each stage, assembly) is produced when it is asked for, by
running the stages again, so that an ordinary compilation pays for nothing that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from blocklang.abi import AccessCounts, KernelAbi, SpaceUsage
from blocklang.lazy import cached_property

if TYPE_CHECKING:
    from blocklang.codegen.objects import MachineCode
    from blocklang.ir.core import Kernel
    from blocklang.passes.schedule import Schedule
    from blocklang.target import Target


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Attributes:
        target: the CPU; None for the host, or what BLOCKLANG_CPU names.
        schedule: makes the schedule; None derives it from the kernel and the target.
        verify: check the IR after every pass.
        enable_fp_fusion: `a * b + c` of floats is rounded once (`blocklang.passes.fuse_multiply_adds`).
    """

    target: Target | None = None
    schedule: Callable[[Kernel, Target], Schedule] | None = None
    verify: bool = False
    enable_fp_fusion: bool = False


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
        build: gives the Block IR that it was compiled from.
        options: how it was compiled.
        seconds: how long each stage took; empty if it was found on disk.
    """

    abi: KernelAbi
    object_code: bytes = field(repr=False)
    build: Callable[[], Kernel] = field(repr=False, compare=False)
    options: CompileOptions = field(repr=False)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def source(self) -> Kernel:
        """The Block IR that it was compiled from."""
        return self.build()

    @cached_property
    def forms(self) -> Stages:
        """All IR forms as text."""
        from blocklang.compiler.stages import write_forms

        return write_forms(self.source, self.options)

    @property
    def stages(self) -> dict[str, str]:
        """The text of each level and the schedule, by name."""
        forms = self.forms
        return {"block": forms.block, "tile": forms.tile, "placed": forms.placed, "schedule": forms.schedule}

    @cached_property
    def llvm_ir(self) -> str:
        """The LLVM IR that the code generator wrote, before LLVM's passes."""
        from blocklang.compiler.stages import write_llvm_ir

        return write_llvm_ir(self.source, self.options, self.abi.name)

    @cached_property
    def machine_code(self) -> MachineCode:
        from blocklang.compiler.stages import compile_llvm_ir

        return compile_llvm_ir(self.llvm_ir, self.options)

    @property
    def optimised_llvm_ir(self) -> str:
        """The LLVM IR after LLVM's passes."""
        return self.machine_code.optimised

    @property
    def assembly(self) -> str:
        """The assembly of the object code."""
        return self.machine_code.assembly


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

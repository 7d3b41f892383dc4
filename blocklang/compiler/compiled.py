"""What the compiler returns: machine code, and what a launch and a reader need to know about it.

Everything a person may want to read (the text of each stage, assembly) is produced when it is asked for, by
running the stages again, so that an ordinary compilation pays for nothing that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from blocklang.abi import KernelAbi
from blocklang.lazy import cached_property

if TYPE_CHECKING:
    from blocklang.codegen.objects import MachineCode
    from blocklang.compiler.stages import Stages
    from blocklang.ir.core import Kernel
    from blocklang.passes.schedule import Schedule
    from blocklang.target import Target


class CompileOptions(NamedTuple):
    """How to compile.

    Attributes:
        target: the CPU; None for the host, or what BLOCKLANG_CPU names.
        schedule: makes the schedule; None derives it from the kernel and the target.
        verify: check the IR after every pass.
        enable_fp_fusion: `a * b + c` of floats is rounded once (`blocklang.passes.fuse_multiply_adds`).
        checks: report accesses that leave their array (`blocklang.passes.insert_checks`).
        nan: report a NaN that is made of numbers (`blocklang.passes.check_nan`).
        poison: masked lanes of loads hold what shows (`blocklang.passes.poison_masked_lanes`).
        emulated: it runs for a device that is not here: nothing is split that the device sees whole.
        audit: what `blocklang check` looks at besides, on one thread (`blocklang.passes.check_races`).
    """

    target: Target | None = None
    schedule: Callable[[Kernel, Target], Schedule] | None = None
    verify: bool = False
    enable_fp_fusion: bool = False
    checks: bool = False
    nan: bool = False
    poison: bool = False
    emulated: bool = False
    audit: bool = False

    @property
    def switches(self) -> tuple[str, ...]:
        """Which optional passes run."""
        from blocklang.passes.pipeline import AUDIT, CHECKS, EMULATED, FP_FUSION, NAN, POISON

        chosen = {
            FP_FUSION: self.enable_fp_fusion,
            CHECKS: self.checks,
            NAN: self.nan,
            POISON: self.poison,
            EMULATED: self.emulated,
            AUDIT: self.audit,
        }
        return tuple(name for name, is_on in chosen.items() if is_on)


class CompiledKernel:
    """A kernel's machine code, and what a launch and a reader need to know about it.

    Attributes:
        abi: the entry's symbol, arguments and memory plan.
        object_code: a relocatable object file that defines the entry.
        options: how it was compiled.
        seconds: how long each stage took; empty if it was found on disk.

    Args:
        build: gives the Block IR that it was compiled from.
    """

    def __init__(
        self,
        abi: KernelAbi,
        object_code: bytes,
        build: Callable[[], Kernel],
        options: CompileOptions,
        seconds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.abi = abi
        self.object_code = object_code
        self.options = options
        self.seconds = seconds
        self._build = build

    @cached_property
    def source(self) -> Kernel:
        """The Block IR that it was compiled from."""
        return self._build()

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

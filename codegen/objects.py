"""LLVM IR to optimised IR, assembly and object code, through llvmlite.

The passes are few and chosen by measurement: vectors, tiles and unrolling are already
in the text, so what is left to LLVM is to clean up and to choose instructions. The loop, SLP and unrolling
passes would cost most of the time for no speed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import llvmlite.binding as llvm

from blocklang.target import Target


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@dataclass(frozen=True)
class MachineCode:
    """What LLVM made of one module."""

    optimised: str
    object_code: bytes
    assembly: str = ""


def target_machine(target: Target) -> llvm.TargetMachine:
    """LLVM's code generator for a target: position-independent code that runs wherever it is loaded."""
    _initialise()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


def parse_module(text: str) -> llvm.ModuleRef:
    """Read and check a module. A failure here is a bug of the code generator."""
    _initialise()
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Run the passes that pay: promote memory, combine, simplify, remove common subexpressions, hoist
    invariants.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def compile_module(text: str, target: Target, *, assembly: bool = False) -> MachineCode:
    """Compile LLVM IR text for a target.

    Args:
        assembly: also produce assembly text, which costs as much as the object code.
    """
    machine = target_machine(target)
    module = parse_module(text)
    optimise(module, machine)
    return MachineCode(
        str(module), machine.emit_object(module), machine.emit_assembly(module) if assembly else ""
    )

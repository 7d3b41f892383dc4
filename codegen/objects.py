"""LLVM IR to optimised IR, assembly and object code, through llvmlite.

The passes are few and chosen by measurement: vectors, tiles and unrolling are already
in the text, so what is left to LLVM is to clean up and to choose instructions. The loop, SLP and unrolling
passes would cost most of the time for no speed. The code generator brings one more, loop strength reduction,
which takes longer than linearly in what a loop addresses: long modules go without it.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from blocklang.target import Target

LLVM_STAGES = ("llvm_read", "llvm_passes", "llvm_code_generation")

# Lines of LLVM IR from which on a module does without loop strength reduction. The addresses of long bodies
# are a base, an index and a constant as they are written; it finds nothing better for them.
LONG_MODULE = 1000
# These passes of the code generator have no other switch than an option of the process, and LLVM ends the
# process over one that it does not know: they are used with the version that was tried.
_HAS_SWITCHES = llvm.llvm_version_info[0] == 22
_NO_STRENGTH_REDUCTION = "-disable-lsr"
# Splits a wide load that reads what a narrower store just wrote. It asks for the size of every access of a
# block and ends the process over a masked load, which has none (LLVM 22, an assertion).
_NO_SPLIT_LOADS = "-x86-disable-avoid-SFB"
_switch_lock = threading.Lock()


def _renew_lock() -> None:
    global _switch_lock
    _switch_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@dataclass(frozen=True)
class MachineCode:
    """What LLVM made of one module; its texts are empty unless they were asked for.

    `seconds` says how long reading, passes and code generation took.
    """

    object_code: bytes
    optimised: str = ""
    assembly: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)


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


def _switches(text: str, target: Target) -> list[str]:
    """The passes of the code generator that this module goes without."""
    switches = []
    if text.count("\n") >= LONG_MODULE:
        switches.append(_NO_STRENGTH_REDUCTION)
    if target.triple.startswith("x86_64") and "@llvm.masked." in text:
        switches.append(_NO_SPLIT_LOADS)
    return switches


@contextmanager
def _without(switches: Sequence[str]) -> Iterator[None]:
    """Code is generated without these passes inside, by this thread."""
    if not (switches and _HAS_SWITCHES):
        yield
        return
    with _switch_lock:
        for switch in switches:
            llvm.set_option("blocklang", f"{switch}=true")
        try:
            yield
        finally:
            for switch in switches:
                llvm.set_option("blocklang", f"{switch}=false")


def compile_module(text: str, target: Target, *, assembly: bool = False) -> MachineCode:
    """Compile LLVM IR text for a target.

    Args:
        assembly: also the texts: optimised LLVM IR, and assembly, which costs as much as the object code.
    """
    times = [time.perf_counter()]
    machine = target_machine(target)
    module = parse_module(text)
    times.append(time.perf_counter())
    optimise(module, machine)
    times.append(time.perf_counter())
    optimised = str(module) if assembly else ""
    with _without(_switches(text, target)):
        object_code = machine.emit_object(module)
        times.append(time.perf_counter())
        written = machine.emit_assembly(module) if assembly else ""
    seconds = {name: end - start for name, start, end in zip(LLVM_STAGES, times, times[1:], strict=False)}
    return MachineCode(object_code, optimised, written, seconds)

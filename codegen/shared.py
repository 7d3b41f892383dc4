"""Functions that equal operations share.

A matrix product is hundreds of instructions, and a kernel has often several of one form: they differ only in
where their buffers stand. Such an operation becomes a function of its operands, and operations whose
functions have the same text call the same one. LLVM compiles it once, and apart from the rest: its passes
take longer than linearly in the size of a function.
"""

from __future__ import annotations

from dataclasses import replace

from blocklang.codegen.emitter import Emitter, llvm_scalar
from blocklang.codegen.loops import Hook, RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Value


def shared(hook: Hook) -> Hook:
    """A hook that emits what `hook` does as a function, and a call.

    Requires: operations without results and regions, whose code depends on nothing but their declaration,
    the kinds of their buffers and their operands.
    """

    def emit_call(emitter: RegionEmitter, op: Operation) -> None:
        assert not op.results, f"{op.name} is no function"
        assert not op.regions, f"{op.name} reads more than its operands"
        given = {value: emitter.values[value] for value in op.operands}
        passed = {lane.text: f"%p{i}" for i, lane in enumerate(given.values()) if lane.text.startswith("%")}
        types = {lane.text: llvm_scalar(lane.type) for lane in given.values()}
        inside = {
            value: replace(lane, text=passed.get(lane.text, lane.text)) for value, lane in given.items()
        }
        parameters = ", ".join(f"{types[text]} {name}" for text, name in passed.items())
        name = emitter.emit.function(parameters, _body(emitter, hook, op, inside))
        arguments = ", ".join(f"{types[text]} {text}" for text in passed)
        emitter.emit.do(f"call void @{name}({arguments})")

    return emit_call


def _body(emitter: RegionEmitter, hook: Hook, op: Operation, values: dict[Value, Lane]) -> list[str]:
    """The lines of the function's body."""
    assert all(lane.is_uniform for lane in values.values())
    emit = Emitter()
    emit.declarations = emitter.emit.declarations
    emit.functions = emitter.emit.functions
    emit.start("entry")
    hook(RegionEmitter(replace(emitter.lanes, emit=emit, values=values, width=0), emitter.hooks), op)
    emit.do("ret void")
    return emit.lines

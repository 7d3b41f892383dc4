"""Recipes compiled by LLVM for this machine: a second implementation of the steps, for tests alone.

It shows that a recipe's bits do not depend on who computes its steps, and it is fast enough to run a recipe
over every f32. It is not the compiler's way from a recipe to machine code.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from blocklang.interpreter.numpy_steps import NUMPY_DTYPES
from blocklang.maths.registry import Recipe
from blocklang.maths.steps import DType

LANES = 16
SCALARS: dict[DType, str] = {
    "i1": "i1",
    "i32": "i32",
    "u32": "i32",
    "i64": "i64",
    "u64": "i64",
    "f32": "float",
    "f64": "double",
}
WIDTHS: dict[DType, int] = {"i1": 1, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "f32": 32, "f64": 64}
FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


@dataclass(frozen=True)
class Value:
    """A vector operand and its dtype."""

    text: str
    dtype: DType

    @property
    def type(self) -> str:
        return vector(self.dtype)


def vector(dtype: DType) -> str:
    return f"<{LANES} x {SCALARS[dtype]}>"


def suffix(dtype: DType) -> str:
    return f"v{LANES}{'i' if dtype[0] in 'iu' else 'f'}{WIDTHS[dtype]}"


@dataclass
class LlvmSteps:
    """`Steps[Value]`: writes one instruction a step."""

    lines: list[str] = field(default_factory=list)
    intrinsics: dict[str, str] = field(default_factory=dict)

    def emit(self, dtype: DType, instruction: str) -> Value:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(name, dtype)

    def call(self, name: str, dtype: DType, *arguments: Value) -> Value:
        function = f"@llvm.{name}"
        types = ", ".join(a.type for a in arguments)
        self.intrinsics[function] = f"declare {vector(dtype)} {function}({types})"
        operands = ", ".join(f"{a.type} {a.text}" for a in arguments)
        return self.emit(dtype, f"call {vector(dtype)} {function}({operands})")

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        if a.dtype != b.dtype:
            raise TypeError(f"{opcode} of {a.dtype} and {b.dtype}")
        return self.emit(a.dtype, f"{opcode} {a.type} {a.text}, {b.text}")

    def constant(self, dtype: DType, value: float | int) -> Value:
        if dtype[0] == "f":
            rounded = float(NUMPY_DTYPES[dtype].type(value))
            literal = "0x" + struct.pack(">d", rounded).hex().upper()
        else:
            literal = str(int(value) % (1 << WIDTHS[dtype]))
        return Value(f"splat ({SCALARS[dtype]} {literal})", dtype)

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("fadd", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("fsub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("fmul", a, b)

    def scale(self, a: Value, shifted: Value) -> Value:
        word: DType = "u32" if a.dtype == "f32" else "u64"
        bits = self.bitcast(shifted, word)
        half = self.lshr(bits, self.constant(word, 1))
        for part in (half, self.isub(bits, half)):
            power = self.shl(part, self.constant(word, 23 if a.dtype == "f32" else 52))
            a = self.mul(a, self.bitcast(power, a.dtype))
        return a

    def div(self, a: Value, b: Value) -> Value:
        return self.binary("fdiv", a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.call(f"fma.{suffix(a.dtype)}", a.dtype, a, b, c)

    def unary(self, name: str, a: Value) -> Value:
        return self.call(f"{name}.{suffix(a.dtype)}", a.dtype, a)

    def sqrt(self, a: Value) -> Value:
        return self.unary("sqrt", a)

    def minimum(self, a: Value, b: Value) -> Value:
        return self.call(f"minimumnum.{suffix(a.dtype)}", a.dtype, a, b)

    def maximum(self, a: Value, b: Value) -> Value:
        return self.call(f"maximumnum.{suffix(a.dtype)}", a.dtype, a, b)

    def abs(self, a: Value) -> Value:
        return self.unary("fabs", a)

    def neg(self, a: Value) -> Value:
        return self.emit(a.dtype, f"fneg {a.type} {a.text}")

    def round_even(self, a: Value) -> Value:
        return self.unary("roundeven", a)

    def floor(self, a: Value) -> Value:
        return self.unary("floor", a)

    def ceil(self, a: Value) -> Value:
        return self.unary("ceil", a)

    def trunc(self, a: Value) -> Value:
        return self.unary("trunc", a)

    def iadd(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b)

    def isub(self, a: Value, b: Value) -> Value:
        return self.binary("sub", a, b)

    def imul(self, a: Value, b: Value) -> Value:
        return self.binary("mul", a, b)

    def umulhi32(self, a: Value, b: Value) -> Value:
        wide = vector("u64")
        x = self.emit("u64", f"zext {a.type} {a.text} to {wide}")
        y = self.emit("u64", f"zext {b.type} {b.text} to {wide}")
        high = self.binary("lshr", self.binary("mul", x, y), self.constant("u64", 32))
        return self.emit(a.dtype, f"trunc {wide} {high.text} to {a.type}")

    def iand(self, a: Value, b: Value) -> Value:
        return self.binary("and", a, b)

    def ior(self, a: Value, b: Value) -> Value:
        return self.binary("or", a, b)

    def ixor(self, a: Value, b: Value) -> Value:
        return self.binary("xor", a, b)

    def shl(self, a: Value, count: Value) -> Value:
        return self.binary("shl", a, count)

    def lshr(self, a: Value, count: Value) -> Value:
        return self.binary("lshr", a, count)

    def ashr(self, a: Value, count: Value) -> Value:
        return self.binary("ashr", a, count)

    def bitcast(self, a: Value, dtype: DType) -> Value:
        return self.emit(dtype, f"bitcast {a.type} {a.text} to {vector(dtype)}")

    def cast(self, a: Value, dtype: DType) -> Value:
        if a.dtype[0] == "f" and dtype[0] in "iu":
            kind = "s" if dtype[0] == "i" else "u"
            return self.call(f"fpto{kind}i.sat.{suffix(dtype)}.{suffix(a.dtype)}", dtype, a)
        return self.emit(dtype, f"{self.conversion(a.dtype, dtype)} {a.type} {a.text} to {vector(dtype)}")

    def conversion(self, source: DType, target: DType) -> str:
        wider = WIDTHS[target] > WIDTHS[source]
        match source[0], target[0]:
            case "f", "f":
                return "fpext" if wider else "fptrunc"
            case "i", "f":
                return "sitofp"
            case "u", "f":
                return "uitofp"
            case "u", _:
                return "zext" if wider else "trunc"
            case _:
                return "sext" if wider else "trunc"

    def compare(self, relation: str, a: Value, b: Value) -> Value:
        if a.dtype != b.dtype:
            raise TypeError(f"comparison of {a.dtype} and {b.dtype}")
        if a.dtype[0] == "f":
            return self.emit("i1", f"fcmp {FLOAT_PREDICATES[relation]} {a.type} {a.text}, {b.text}")
        sign = "" if relation in ("eq", "ne") else ("s" if a.dtype[0] == "i" else "u")
        return self.emit("i1", f"icmp {sign}{relation} {a.type} {a.text}, {b.text}")

    def lt(self, a: Value, b: Value) -> Value:
        return self.compare("lt", a, b)

    def le(self, a: Value, b: Value) -> Value:
        return self.compare("le", a, b)

    def gt(self, a: Value, b: Value) -> Value:
        return self.compare("gt", a, b)

    def ge(self, a: Value, b: Value) -> Value:
        return self.compare("ge", a, b)

    def eq(self, a: Value, b: Value) -> Value:
        return self.compare("eq", a, b)

    def ne(self, a: Value, b: Value) -> Value:
        return self.compare("ne", a, b)

    def logical_and(self, a: Value, b: Value) -> Value:
        return self.binary("and", a, b)

    def logical_or(self, a: Value, b: Value) -> Value:
        return self.binary("or", a, b)

    def logical_not(self, a: Value) -> Value:
        return self.binary("xor", a, self.constant("i1", 1))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        if a.dtype != b.dtype:
            raise TypeError(f"select of {a.dtype} and {b.dtype}")
        return self.emit(
            a.dtype, f"select {condition.type} {condition.text}, {a.type} {a.text}, {b.type} {b.text}"
        )

    def rarely(
        self, condition: Value, compute: Callable[[], tuple[Value, ...]], usual: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        return tuple(self.select(condition, a, b) for a, b in zip(compute(), usual, strict=True))


def module_text(recipe: Recipe) -> str:
    """Write `void kernel(size, result, arguments...)`, a loop of `LANES` lanes a step."""
    scalar = SCALARS[recipe.dtype]
    steps = LlvmSteps()
    arguments = [Value(f"%x{i}", recipe.dtype) for i in range(recipe.arity)]
    result = recipe.apply(steps, *arguments)
    parameters = ", ".join(f"ptr noalias %a{i}" for i in range(recipe.arity))
    loads = [
        line
        for i, argument in enumerate(arguments)
        for line in (
            f"  %p{i} = getelementptr {scalar}, ptr %a{i}, i64 %i",
            f"  {argument.text} = load {argument.type}, ptr %p{i}, align 4",
        )
    ]
    return "\n".join(
        [
            *steps.intrinsics.values(),
            f"define void @kernel(i64 %size, ptr noalias %out, {parameters}) {{",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [0, %entry], [%next, %loop]",
            *loads,
            *steps.lines,
            f"  %p = getelementptr {scalar}, ptr %out, i64 %i",
            f"  store {result.type} {result.text}, ptr %p, align 4",
            f"  %next = add i64 %i, {LANES}",
            "  %more = icmp slt i64 %next, %size",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


class NativeRecipe:
    """A recipe as machine code, called on arrays whose size is a multiple of `LANES`."""

    def __init__(self, recipe: Recipe, features: str | None = None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.recipe = recipe
        self.module = llvm.parse_assembly(module_text(recipe))
        self.module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name() if features is None else "x86-64",
            features=llvm.get_host_cpu_features().flatten() if features is None else features,
            opt=2,
        )
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_module_pass_manager()
        passes.add_instruction_combine_pass()
        passes.run(self.module, builder)
        self.assembly = machine.emit_assembly(self.module)
        self.engine = llvm.create_mcjit_compiler(self.module, machine)
        self.engine.finalize_object()
        pointers = [ctypes.c_void_p] * (recipe.arity + 1)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)
        self.function = prototype(self.engine.get_function_address("kernel"))

    def __call__(self, *arguments: npt.NDArray[Any]) -> npt.NDArray[Any]:
        size = arguments[0].size
        if size % LANES:
            raise ValueError(f"{size} is not a multiple of {LANES}")
        result = np.empty_like(arguments[0])
        self.function(size, result.ctypes.data, *(a.ctypes.data for a in arguments))
        return result

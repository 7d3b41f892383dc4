"""Writes LLVM IR as text: registers, basic blocks, phis, declarations of intrinsics.

A thin layer on purpose: building the text directly takes a tenth of the time of building an object tree and
printing it, and what is written is what a reader of `blocklang llvm` sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blocklang.ir.types import PointerType, ScalarType, Type

_FLOATS = {16: "half", 32: "float", 64: "double"}


def llvm_scalar(type: Type) -> str:
    """LLVM's name of a scalar type. bf16 and the 8-bit floats travel as their bits; they compute in float."""
    if isinstance(type, PointerType):
        return "ptr"
    assert isinstance(type, ScalarType), type
    if type.name == "bf16" or type.is_float8:
        return f"i{type.bits}"
    return _FLOATS[type.bits] if type.is_float else f"i{type.bits}"


def vector_of(scalar: str, width: int) -> str:
    """The type of `width` lanes of an LLVM scalar type; the scalar itself for width 0."""
    return f"<{width} x {scalar}>" if width else scalar


def llvm_type(type: Type, width: int = 0) -> str:
    return vector_of(llvm_scalar(type), width)


def splat_constant(scalar: str, text: str, width: int) -> str:
    """A constant with the same value in every lane."""
    return f"splat ({scalar} {text})" if width else text


class Emitter:
    """The body of one function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.functions: dict[tuple[str, ...], str] = {}  # what it calls: names by result, parameters, body
        self.block = "entry"
        self._registers = 0
        self._blocks = 0

    def register(self) -> str:
        self._registers += 1
        return f"%r{self._registers}"

    def op(self, text: str) -> str:
        """Append an instruction and return the register of its result."""
        name = self.register()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def new_block(self, hint: str) -> str:
        """A fresh label; `start` places it."""
        self._blocks += 1
        return f"{hint}{self._blocks}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch_if(
        self, condition: str, then: str, otherwise: str, *, weights: tuple[int, int] | None = None
    ) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def phi(self, type: str, incoming: Iterable[tuple[str, str]]) -> Phi:
        """A phi at the current place; further incoming edges may be added later."""
        phi = Phi(self, self.register(), type, len(self.lines))
        self.lines.append("")
        for value, block in incoming:
            phi.add(value, block)
        return phi

    def call(self, result: str, name: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic: `arguments` are (type, value); returns the result's register, or '' for void."""
        types = ", ".join(t for t, _ in arguments)
        self.declarations[name] = f"declare {result} @{name}({types})"
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def function(self, parameters: str, body: Sequence[str], result: str = "void") -> str:
        """The name of the function of the module with this text; it is made once. One with a result does
        nothing else.
        """
        return self.functions.setdefault((result, parameters, *body), f"part{len(self.functions)}")

    # ---- small conveniences ----

    def add(self, a: str, b: str | int) -> str:
        """i64 sum, with constants folded."""
        if str(b) == "0":
            return a
        if a == "0":
            return str(b)
        if _is_number(a) and _is_number(str(b)):
            return str(int(a) + int(b))
        return self.op(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        """i64 product, with constants folded."""
        if str(b) == "1":
            return a
        if a == "1":
            return str(b)
        if "0" in (a, str(b)):
            return "0"
        if _is_number(a) and _is_number(str(b)):
            return str(int(a) * int(b))
        return self.op(f"mul i64 {a}, {b}")

    def offset(self, pointer: str, byte_count: str | int) -> str:
        """A pointer some bytes on."""
        return (
            pointer
            if str(byte_count) == "0"
            else self.op(f"getelementptr i8, ptr {pointer}, i64 {byte_count}")
        )

    def splat(self, scalar: str, text: str, width: int) -> str:
        """A vector with one scalar in every lane."""
        if not width:
            return text
        if not text.startswith("%"):
            return splat_constant(scalar, text, width)
        type = vector_of(scalar, width)
        first = self.op(f"insertelement {type} poison, {scalar} {text}, i64 0")
        return self.op(f"shufflevector {type} {first}, {type} poison, <{width} x i32> zeroinitializer")


class Phi:
    """A phi instruction whose edges arrive one by one; its line is rewritten with each."""

    def __init__(self, emitter: Emitter, name: str, type: str, line: int) -> None:
        self.emitter = emitter
        self.name = name
        self.type = type
        self.line = line
        self.edges: list[str] = []

    def add(self, value: str, block: str) -> None:
        self.edges.append(f"[ {value}, %{block} ]")
        self.emitter.lines[self.line] = f"  {self.name} = phi {self.type} {', '.join(self.edges)}"


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()

"""Reads the text of inline PTX: declarations, scopes, predicates and instructions, nothing that jumps.

A statement ends in a semicolon; braces open a scope, or list the parts of a register where an operand stands.
Memory, labels, special registers and directives other than `.reg` are refused, each with its reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from blocklang.diagnostics import CompilationError

_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r"|(?P<token>\$\{\d+\}|\$\d+|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?|[%A-Za-z_.][\w.$%]*(?:::\w+)*|[{}\[\],;:@!|<>+\-])",
    re.DOTALL,
)
_REASONS = {
    **dict.fromkeys(
        ("ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "cp", "discard", "tensormap", "multimem"),
        "it accesses memory, which inline assembly cannot do here: use tl.load, tl.store and the atomics",
    ),
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit", "trap", "brkpt"), "it jumps"),
    **dict.fromkeys(
        ("bar", "barrier", "membar", "fence", "mbarrier", "griddepcontrol", "nanosleep", "setmaxnreg"),
        "it synchronises threads, and there are none",
    ),
    **dict.fromkeys(("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "tcgen05"), "use tl.dot"),
    **dict.fromkeys(
        ("shfl", "vote", "match", "activemask", "redux", "elect"), "it exchanges values between threads"
    ),
    **dict.fromkeys(("tex", "tld4", "txq", "suld", "sust", "sured"), "there are no textures"),
}


@dataclass(frozen=True)
class Operand:
    """A register, an immediate, or several registers in braces.

    Attributes:
        text: as written.
        name: of a register, after its scope was found; empty for an immediate.
        parts: of a vector.
        negated: for a predicate, `!p`.
    """

    text: str
    name: str = ""
    parts: tuple[Operand, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Instruction:
    """One instruction: `add.rn.f32` has opcode `add` and modifiers `rn` and `f32`."""

    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Operand | None = None


@dataclass
class Program:
    """What a text says.

    Attributes:
        instructions: in order.
        declared: the PTX type of every declared register, by its unique name.
    """

    instructions: list[Instruction]
    declared: dict[str, str]


def refuse(what: str, why: str) -> CompilationError:
    return CompilationError(f"inline_asm_elementwise: {what} is not supported: {why}")


def parse(text: str) -> Program:
    """Read a program. Raises CompilationError for what it cannot say."""
    return _Parser(_tokens(text)).run()


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            snippet = text[position : position + 20].split("\n")[0]
            raise CompilationError(
                f"inline_asm_elementwise: cannot read `{snippet}`",
                help="straight-line PTX on registers is understood; other instruction sets are not",
            )
        if match["token"] is not None:
            tokens.append(match["token"])
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0
        self.scopes: list[dict[str, str]] = [{}]
        self.program = Program([], {})

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        got = self.take()
        if got != token:
            raise CompilationError(f"inline_asm_elementwise: expected `{token}`, got `{got or 'the end'}`")

    def run(self) -> Program:
        while self.position < len(self.tokens):
            token = self.peek()
            if token == "{":
                self.take()
                self.scopes.append({})
            elif token == "}":
                self.take()
                if len(self.scopes) == 1:
                    raise CompilationError("inline_asm_elementwise: a `}` without its `{`")
                self.scopes.pop()
            elif token == ";":
                self.take()
            elif token == ".reg":
                self.declaration()
            elif token.startswith("."):
                raise refuse(f"the directive `{token}`", "only `.reg` declares something here")
            else:
                self.instruction()
        if len(self.scopes) > 1:
            raise CompilationError("inline_asm_elementwise: a `{` without its `}`")
        return self.program

    def declaration(self) -> None:
        self.take()
        type_ = self.take().lstrip(".")
        if not re.fullmatch(r"[subf](8|16|32|64)|pred|f16x2|bf16(x2)?", type_):
            raise refuse(f"`.reg .{type_}`", "registers are of 8 to 64 bits, or predicates")
        while True:
            name = self.take()
            if self.peek() == "<":
                self.take()
                count = int(self.take())
                self.expect(">")
                for index in range(count):
                    self.declare(f"{name}{index}", type_)
            else:
                self.declare(name, type_)
            if self.peek() != ",":
                break
            self.take()
        self.expect(";")

    def declare(self, name: str, type_: str) -> None:
        unique = f"{name}@{len(self.program.declared)}"
        self.scopes[-1][name] = unique
        self.program.declared[unique] = type_

    def instruction(self) -> None:
        start = self.position
        predicate = None
        if self.peek() == "@":
            self.take()
            predicate = self.operand()
        name = self.take()
        if self.peek() == ":":
            raise refuse(f"the label `{name}`", "nothing may jump")
        opcode, *modifiers = name.split(".")
        if opcode in _REASONS:
            raise refuse(f"`{name}`", _REASONS[opcode])
        operands = []
        while self.peek() not in (";", ""):
            operands.append(self.operand())
            if self.peek() == "|":  # setp gives a predicate and its complement
                self.take()
                operands.append(self.operand())
            if self.peek() == ",":
                self.take()
            elif self.peek() != ";":
                raise CompilationError(f"inline_asm_elementwise: `;` expected after `{name}`")
        self.expect(";")
        text = " ".join(self.tokens[start : self.position - 1])
        self.program.instructions.append(
            Instruction(text, opcode, tuple(modifiers), tuple(operands), predicate)
        )

    def operand(self) -> Operand:
        token = self.take()
        if token == "[":
            raise refuse("an address in brackets", "it accesses memory: use tl.load and tl.store")
        if token == "{":
            parts = [self.operand()]
            while self.peek() == ",":
                self.take()
                parts.append(self.operand())
            self.expect("}")
            return Operand("{...}", parts=tuple(parts))
        if token == "!":
            inner = self.operand()
            return Operand(f"!{inner.text}", inner.name, negated=True)
        if token in ("-", "+"):
            return Operand(token.replace("+", "") + self.take())
        if token.startswith("$"):
            return Operand(token, name="$" + token.strip("${}"))
        if token[0].isdigit():
            return Operand(token)
        for scope in reversed(self.scopes):
            if token in scope:
                return Operand(token, name=scope[token])
        if token.startswith("%"):
            raise refuse(f"the special register `{token}`", "it belongs to a GPU")
        if token == "_":
            return Operand(token, name="_")
        raise CompilationError(
            f"inline_asm_elementwise: `{token}` is not declared",
            help="declare registers with `.reg`, and write operands as $0, $1, ...",
        )

"""Random kernels as Python source, in the idioms that people write.

Offsets come from aranges, under masks; loops have accumulators. The left operand of an operator is a run-
time value and the right one may be a small number, so that promotion is exercised without asking for what
the language refuses (division of two constants by zero, a literal that does not fit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.types import BF16, F16, F32, F64, I8, I16, I32, I64, PointerType, ScalarType
from tests.frontend.building import define
from tests.fuzz.choices import Choices

Shape = tuple[int, ...]

DTYPES: dict[str, ScalarType] = {
    "float32": F32,
    "int32": I32,
    "float16": F16,
    "int64": I64,
    "bfloat16": BF16,
    "float64": F64,
    "int8": I8,
    "int16": I16,
}
FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int32", "int64", "int8", "int16")
_EXTENTS = (4, 3, 1, 8, 16, 17, 32, 33, 64)


@dataclass(frozen=True)
class Variable:
    """A name in scope: its dtype and shape."""

    name: str
    dtype: str
    shape: Shape


@dataclass
class ArrayArgument:
    """A pointer parameter."""

    name: str
    dtype: str


class SourceWriter:
    """Writes one kernel.

    Attributes:
        rows, columns: the extents of its blocks: [rows], [columns], [rows, columns].
        arrays: its pointers.
        scalars: its numbers.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.rows, self.columns = choices.pick(_EXTENTS), choices.pick(_EXTENTS)
        self.arrays: list[ArrayArgument] = []
        self.scalars: dict[str, tuple[str, Any]] = {}
        self.variables: list[Variable] = []
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.scalar("n", "int32", choices.pick([self.columns // 2, self.columns, 0, self.columns + 3]))
        self.scalar("m", "int32", choices.pick([self.rows, self.rows // 2, 1]))
        self.scalar("stride", "int32", choices.pick([self.columns, self.columns + 1, 2 * self.columns]))
        self.scalar("scale", "float32", choices.pick([0.5, 3.0, -0.1]))

    def text(self) -> str:
        """The whole function."""
        self.prologue()
        for _ in range(self.choices.between(2, 6)):
            self.statement(2)
        self.store()
        parameters = [*(a.name for a in self.arrays), *self.scalars, "M: tl.constexpr", "N: tl.constexpr"]
        return f"def kernel({', '.join(parameters)}):\n" + "\n".join(self.lines) + "\n"

    # ---- names ----

    def scalar(self, name: str, dtype: str, number: Any) -> None:
        self.scalars[name] = (dtype, number)
        self.variables.append(Variable(name, dtype, ()))

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def array(self) -> ArrayArgument:
        if self.arrays and self.choices.chance(50):
            return self.choices.pick(self.arrays)
        self.arrays.append(ArrayArgument(self.fresh("p"), self.choices.pick(list(DTYPES))))
        return self.arrays[-1]

    def prologue(self) -> None:
        for axis in (0, 1):
            self.line(f"pid{axis} = tl.program_id({axis})")
            self.variables.append(Variable(f"pid{axis}", "int32", ()))
        for name, extent, axis in (("rows", "M", 1), ("cols", "N", 0)):
            shift = self.choices.pick(["", f"pid{axis} * {extent} + "])
            self.line(f"{name} = {shift}tl.arange(0, {extent})")
            self.variables.append(Variable(name, "int32", (self.rows if name == "rows" else self.columns,)))

    # ---- statements ----

    def statement(self, depth: int) -> None:
        plain = (self.assign, self.assign, self.store, self.update, self.accumulate)
        nested = (self.loop, self.branch, self.countdown) if depth else ()
        number = self.choices.below(len(plain) + len(nested))
        if number < len(plain):
            plain[number]()
        else:
            nested[number - len(plain)](depth - 1)

    def shape(self) -> Shape:
        return self.choices.pick([(self.columns,), (self.rows, self.columns), (self.rows,), ()])

    def assign(self) -> None:
        dtype, shape = self.choices.pick(list(DTYPES)), self.shape()
        value = self.expression(dtype in FLOATS, shape, 3)
        name = self.fresh()
        self.line(f"{name} = tl.cast({value}, tl.{dtype})")
        self.variables.append(Variable(name, dtype, shape))

    def update(self) -> None:
        """Give a variable that exists a new value of its type: carried by loops and branches around."""
        mine = [v for v in self.variables if v.name.startswith("v")]
        if not mine:
            return self.assign()
        variable = self.choices.pick(mine[-4:])
        value = self.expression(variable.dtype in FLOATS, variable.shape, 2)
        self.line(f"{variable.name} = tl.cast({value}, tl.{variable.dtype})")

    def accumulate(self) -> None:
        mine = [v for v in self.variables if v.name.startswith("v")]
        if not mine:
            return self.assign()
        variable = self.choices.pick(mine[-4:])
        value = self.expression(variable.dtype in FLOATS, variable.shape, 2)
        self.line(
            f"{variable.name} {self.choices.pick(['+=', '-=', '*='])} tl.cast({value}, tl.{variable.dtype})"
        )

    def store(self) -> None:
        shape = self.shape() or (self.columns,)
        array = self.array()
        pointer, mask = self.access(array, shape)
        dtype = array.dtype if self.choices.chance(60) else self.choices.pick(list(DTYPES))
        self.line(
            f"tl.store({pointer}, {self.expression(dtype in FLOATS, shape, 3)}{mask and f', mask={mask}'})"
        )

    def nested(self, depth: int) -> None:
        """An indented block; what it defines is not seen after it."""
        variables = list(self.variables)
        self.indent += 1
        for _ in range(self.choices.between(1, 3)):
            self.statement(depth)
        self.indent -= 1
        self.variables = variables

    def loop(self, depth: int) -> None:
        index = self.fresh("i")
        bounds = self.choices.pick(["3", "0, 3", "n", "0, m, 2", "4, 0, -1", "2, 2"])
        self.line(f"for {index} in range({bounds}):")
        self.variables.append(Variable(index, "int32", ()))
        self.nested(depth)
        self.variables = [v for v in self.variables if v.name != index]

    def branch(self, depth: int) -> None:
        self.line(f"if {self.condition((), 1)}:")
        self.nested(depth)
        if self.choices.chance(50):
            self.line("else:")
            self.nested(depth)

    def countdown(self, depth: int) -> None:
        name = self.fresh("k")
        self.line(f"{name} = m * 0 + {self.choices.between(1, 3)}")
        self.line(f"while {name} > 0{self.choices.pick(['', f' and {self.condition((), 0)}'])}:")
        self.nested(depth)
        self.indent += 1
        self.line(f"{name} -= 1")
        self.indent -= 1

    # ---- accesses ----

    def access(self, array: ArrayArgument, shape: Shape) -> tuple[str, str]:
        """A pointer block and a mask for it, or ''."""
        if len(shape) == 2:
            offset = self.choices.pick(
                [
                    "rows[:, None] * stride + cols[None, :]",
                    "cols[None, :] * M + rows[:, None]",
                    "rows[:, None] + cols[None, :]",
                ]
            )
            masks = [
                "(rows[:, None] < m) & (cols[None, :] < n)",
                "",
                "cols[None, :] < n",
                "rows[:, None] >= cols[None, :]",
            ]
        else:
            name = "rows" if shape == (self.rows,) and self.rows != self.columns else "cols"
            offset = self.choices.pick(
                [name, f"{name} * 2", f"{name} + stride", f"({name} % 5)", f"(63 - {name})"]
            )
            masks = [f"{name} < n", "", f"({name} >= 1) & ({name} < n)", f"{name} % 2 == 0"]
        mask = self.choices.pick(masks)
        if mask and self.choices.chance(25):
            mask = f"({mask}) & ({self.condition(shape, 1)})"
        return f"{array.name} + {offset}", mask

    def load(self, floating: bool, shape: Shape) -> str:
        array = self.array()
        pointer, mask = self.access(array, shape or (self.columns,))
        other = self.choices.pick(["", "0", "1", "-1"]) if mask else ""
        text = f"tl.load({pointer}{mask and f', mask={mask}'}{other and f', other={other}'})"
        text = text if shape else f"tl.max({text}, 0)"
        matches = (array.dtype in FLOATS) == floating
        return text if matches else f"{text}.to(tl.{self.choices.pick(FLOATS if floating else INTEGERS)})"

    # ---- expressions ----

    def expression(self, floating: bool, shape: Shape, depth: int) -> str:
        if depth == 0 or self.choices.chance(15):
            return self.leaf(floating, shape)
        makers = [self.binary, self.binary, self.where, self.unary, self.load_, self.converted]
        makers += [self.reduced] if len(shape) < 2 else [self.outer]
        makers += [self.whole] if shape else []
        if len(shape) == 2 and floating:
            makers += [self.product]
        return self.choices.pick(makers)(floating, shape, depth - 1)

    def leaf(self, floating: bool, shape: Shape) -> str:
        fits = [v for v in self.variables if (v.dtype in FLOATS) == floating and v.shape == shape]
        if fits:
            return self.choices.pick(fits[-6:]).name
        base = {
            0: "pid0",
            1: "rows" if shape == (self.rows,) and self.rows != self.columns else "cols",
            2: "(rows[:, None] - cols[None, :])",
        }[len(shape)]
        return f"{base}.to(tl.float32)" if floating else base

    def load_(self, floating: bool, shape: Shape, depth: int) -> str:
        return self.load(floating, shape)

    def right(self, floating: bool, shape: Shape, depth: int) -> str:
        """A right operand: of the shape, a scalar, or a small literal."""
        if self.choices.chance(25):
            return self.choices.pick(["2.5", "0.5", "3"] if floating else ["2", "3", "7", "1"])
        return self.expression(floating, () if self.choices.chance(20) else shape, depth)

    def binary(self, floating: bool, shape: Shape, depth: int) -> str:
        lhs = self.expression(floating, shape, depth)
        if self.choices.chance(20):
            name = self.choices.pick(["maximum", "minimum"])
            return f"tl.{name}({lhs}, {self.expression(floating, shape, depth)})"
        operator = self.choices.pick(
            ["+", "-", "*", "/"] if floating else ["+", "-", "*", "&", "|", "^", "//", "%", "<<", ">>"]
        )
        return f"({lhs} {operator} {self.right(floating, shape, depth)})"

    def unary(self, floating: bool, shape: Shape, depth: int) -> str:
        value = self.expression(floating, shape, depth)
        forms = ["(-{})", "tl.abs({})"] + (
            ["tl.exp({})", "tl.sqrt({})", "tl.sin({})", "tl.floor({})", "tl.log({})", "tl.erf({})"]
            if floating
            else ["(~{})"]
        )
        return self.choices.pick(forms).format(value)

    def where(self, floating: bool, shape: Shape, depth: int) -> str:
        condition, value = self.condition(shape, depth), self.expression(floating, shape, depth)
        return f"tl.where({condition}, {value}, {self.right(floating, shape, depth)})"

    def converted(self, floating: bool, shape: Shape, depth: int) -> str:
        value = self.expression(self.choices.chance(50), shape, depth)
        return f"tl.cast({value}, tl.{self.choices.pick(FLOATS if floating else INTEGERS)})"

    def reduced(self, floating: bool, shape: Shape, depth: int) -> str:
        name = self.choices.pick(["sum", "max", "min"])
        if not shape:
            return f"tl.{name}({self.expression(floating, (self.columns,), depth)}, axis=0)"
        axis = 1 if shape == (self.rows,) else 0
        return f"tl.{name}({self.expression(floating, (self.rows, self.columns), depth)}, axis={axis})"

    def whole(self, floating: bool, shape: Shape, depth: int) -> str:
        """What takes a whole block and keeps its shape: orders, scans, other lanes, parts and their like."""
        value, axis = self.expression(floating, shape, depth), len(shape) - 1
        other = self.expression(floating, shape, depth) if self.choices.chance(40) else value
        dtype = self.choices.pick(FLOATS if floating else INTEGERS)
        pair = f"tl.join(tl.cast({{0}}, tl.{dtype}), tl.cast({{1}}, tl.{dtype}))"
        forms = [
            "tl.flip({0}, {axis})",
            "tl.cumsum({0}, axis={axis})",
            "tl.sort({0})",
            "tl.cumsum({0}, axis=0, reverse=True)",
            "tl.sort({0}, descending=True)",
            f"tl.sum({pair}, axis={len(shape)})",
            f"tl.split({pair})[1]",
            "tl.trans(tl.trans({0}))" if len(shape) == 2 else f"tl.max({pair}, axis=1)",
            "tl.reshape(tl.ravel({0}), [M, N])" if len(shape) == 2 else "tl.cumprod({0}, axis=0)",
        ]
        if not floating and len(shape) == 1:
            extent = "M" if shape == (self.rows,) and self.rows != self.columns else "N"
            forms.append(f"tl.histogram({{0}}, {extent})")
        if len(shape) == 1:
            index = "rows" if shape == (self.rows,) and self.rows != self.columns else "cols"
            forms.append(f"tl.gather({{0}}, {index} * 0 + ({index} ^ 1) % {shape[0]}, axis=0)")
        return self.choices.pick(forms).format(value, other, axis=axis)

    def outer(self, floating: bool, shape: Shape, depth: int) -> str:
        lhs = self.expression(floating, (self.rows,), depth)
        rhs = self.expression(floating, (self.columns,), depth)
        return f"({lhs}[:, None] {self.choices.pick(['+', '*', '-'])} {rhs}[None, :])"

    def product(self, floating: bool, shape: Shape, depth: int) -> str:
        dtype = self.choices.pick(["float32", "float16", "bfloat16", "float8e5", "float8e4nv"])
        a, b, c = (self.leaf_or_load() for _ in range(3))
        inner = f"tl.dot(tl.cast({a}, tl.{dtype}), tl.trans(tl.cast({b}, tl.{dtype})))"
        return f"tl.dot(tl.cast({inner}, tl.{dtype}), tl.cast({c}, tl.{dtype}))"

    def leaf_or_load(self) -> str:
        shape = (self.rows, self.columns)
        return self.load(True, shape) if self.choices.chance(50) else self.leaf(True, shape)

    def condition(self, shape: Shape, depth: int) -> str:
        floating = self.choices.chance(40)
        lhs = self.expression(floating, shape, depth)
        predicate = self.choices.pick(["<", "<=", ">", ">=", "==", "!="])
        text = f"({lhs} {predicate} {self.right(floating, shape, depth)})"
        return f"({text} & {self.condition(shape, 0)})" if shape and self.choices.chance(15) else text


def source_of(text: str) -> KernelSource:
    """The function of a text that `SourceWriter` wrote."""
    return KernelSource.from_function(define(text, "kernel"))


def build(writer: SourceWriter, text: str) -> Kernel:
    """The Block IR of the text."""
    arguments = [
        *(Argument(a.name, type=PointerType(DTYPES[a.dtype])) for a in writer.arrays),
        *(Argument(name, type=DTYPES[dtype]) for name, (dtype, _) in writer.scalars.items()),
        Argument("M", constexpr=writer.rows),
        Argument("N", constexpr=writer.columns),
    ]
    return build_kernel(source_of(text), arguments)

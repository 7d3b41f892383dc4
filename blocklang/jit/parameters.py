"""What a kernel's signature says, and binding the arguments of a launch to it.

Every refusal points at the kernel's `def` line, shows the signature and says what to write.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import LaunchError, Location, UnknownArgument
from blocklang.ir.types import (
    BF16,
    F16,
    F32,
    F64,
    FLOAT8_TYPES,
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    PointerType,
    ScalarType,
    Type,
    parse_type,
)

# Triton's short and long names beside our own.
_SCALAR_NAMES: dict[str, ScalarType] = {
    **dict.fromkeys(("i1", "int1", "bool"), I1),
    **{f"{prefix}{t.bits}": t for t in (I8, I16, I32, I64) for prefix in ("i", "int")},
    **{f"{prefix}{t.bits}": t for t in (U8, U16, U32, U64) for prefix in ("u", "uint")},
    **{f"{prefix}{t.bits}": t for t in (F16, F32, F64) for prefix in ("f", "fp", "float")},
    **{f"{prefix}{t.name[1:]}": t for t in FLOAT8_TYPES for prefix in ("f", "fp", "float")},
    "bf16": BF16,
    "bfloat16": BF16,
}

NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        is_constexpr: annotated `constexpr`: its value is compiled in.
        type: the type that an annotation such as `tl.int64` or `"*fp32"` forces; None to go by the argument.
        is_const: annotated `const`: an array that the kernel may not store to.
        do_not_specialize: compile one version for every value.
        do_not_specialize_on_alignment: compile one version whatever divides the value or address.
        default: NO_DEFAULT if the argument must be given.
        annotation: the annotation in words, "" if there is none.
    """

    name: str
    position: int
    is_constexpr: bool
    type: ScalarType | PointerType | None
    is_const: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool
    default: Any
    annotation: str = ""

    @property
    def num(self) -> int:
        """The position, under the name that Triton gives it."""
        return self.position

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    def __str__(self) -> str:
        words = "constexpr" if self.is_constexpr else "const" if self.is_const else self.type
        annotation = f": {words}" if words else ""
        default = "" if self.default is NO_DEFAULT else f"{' = ' if annotation else '='}{self.default!r}"
        return f"{self.name}{annotation}{default}"


def parse_argument_type(text: str) -> ScalarType | PointerType | None:
    """The type that `fp32`, `*fp32`, `i64` or our own `ptr<f32>` names; None if the text names none."""
    text = text.strip()
    if text.startswith("*"):
        element = text[1:].removeprefix("k")  # Triton writes a pointer to constant memory as *k
        return PointerType(_SCALAR_NAMES[element]) if element in _SCALAR_NAMES else None
    if text in _SCALAR_NAMES:
        return _SCALAR_NAMES[text]
    try:
        parsed: Type = parse_type(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, (ScalarType, PointerType)) else None


class Signature:
    """The parameters of a kernel, and where it is defined."""

    def __init__(
        self,
        fn: Callable[..., Any],
        do_not_specialize: Sequence[str | int] = (),
        do_not_specialize_on_alignment: Sequence[str | int] = (),
    ) -> None:
        self.name = fn.__name__
        self._fn = fn
        declared = list(inspect.signature(fn).parameters.values())
        fixed = _chosen(declared, do_not_specialize, "do_not_specialize")
        unaligned = _chosen(declared, do_not_specialize_on_alignment, "do_not_specialize_on_alignment")
        self.parameters = tuple(
            _parameter(position, each, each.name in fixed, each.name in unaligned)
            for position, each in enumerate(declared)
        )
        self.by_name = {p.name: p for p in self.parameters}
        self._variadic = [str(p) for p in declared if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def location(self) -> Location:
        """Where the kernel's name stands in its file; its first line if the source cannot be read."""
        code = self._fn.__code__
        line, column, width = code.co_firstlineno, 0, 0
        try:
            source, first = inspect.getsourcelines(self._fn)
        except OSError:
            source, first = [], line
        for offset, text in enumerate(source):
            at = text.find(f"def {self.name}")
            if at >= 0:
                line, column, width = first + offset, at + len("def "), len(self.name)
                break
        return Location(code.co_filename, line, column, line, column + width)

    def error(
        self, message: str, help: str | None = None, kind: type[LaunchError] = LaunchError
    ) -> LaunchError:
        """A LaunchError, or one of its subclasses, that points at the kernel's definition."""
        return kind(message, location=self.location, help=help)

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Any]:
        """One value per parameter, defaults filled in; `kwargs` holds no launch options any more.

        Raises:
            LaunchError: an argument is missing, given twice, unknown, or one too many.
        """
        if self._variadic:
            raise self.error(
                f"{self.name}() takes {self._variadic[0]}: a kernel has a fixed number of parameters",
                "name each parameter",
            )
        if len(args) > len(self.parameters):
            raise self.error(
                f"{self.name}() takes {_count(len(self.parameters), 'argument')}, {len(args)} were given",
                f"the kernel is {self}; the grid stands in brackets: {self.name}[grid](...)",
            )
        values = list(args)
        used = 0
        for parameter in self.parameters[len(args) :]:
            if parameter.name in kwargs:
                values.append(kwargs[parameter.name])
                used += 1
            elif parameter.default is not NO_DEFAULT:
                values.append(parameter.default)
            else:
                raise self._missing(args, kwargs)
        if used != len(kwargs):
            raise self._misplaced(args, kwargs)
        return values

    def _missing(self, args: Sequence[object], kwargs: Mapping[str, object]) -> LaunchError:
        unknown = [name for name in kwargs if name not in self.by_name]
        if unknown:
            return self._misplaced(args, kwargs)
        names = [
            p.name for p in self.parameters[len(args) :] if p.name not in kwargs and p.default is NO_DEFAULT
        ]
        quoted = ", ".join(repr(name) for name in names)
        return self.error(
            f"{self.name}() misses {'argument' if len(names) == 1 else 'arguments'} {quoted}",
            f"the kernel is {self}; pass " + ", ".join(f"{name}=..." for name in names),
        )

    def _misplaced(self, args: Sequence[object], kwargs: Mapping[str, object]) -> LaunchError:
        for name in kwargs:
            if name not in self.by_name:
                import difflib

                near = difflib.get_close_matches(name, self.by_name, 1)
                return self.error(
                    f"{self.name}() has no parameter {name!r}, and no launch option has this name",
                    (f"did you mean {near[0]!r}? " if near else "") + f"the kernel is {self}",
                    UnknownArgument,
                )
        twice = next(p.name for p in self.parameters[: len(args)] if p.name in kwargs)
        return self.error(
            f"{self.name}() got two values for {twice!r}, by position and by name", f"the kernel is {self}"
        )


def _chosen(
    declared: Sequence[inspect.Parameter], chosen: Sequence[str | int], option: str
) -> frozenset[str]:
    names = [p.name for p in declared]
    found: set[str] = set()
    for choice in chosen:
        if isinstance(choice, int) and 0 <= choice < len(names):
            found.add(names[choice])
        elif choice in names:
            found.add(str(choice))
        else:
            raise LaunchError(
                f"{option} names {choice!r}, which is no parameter",
                help=f"the parameters are {', '.join(names)}",
            )
    return frozenset(found)


def _parameter(position: int, declared: inspect.Parameter, fixed: bool, unaligned: bool) -> Parameter:
    text = _annotation_text(declared.annotation)
    last = text.rpartition(".")[2]
    type_ = None
    if last not in ("constexpr", "const"):
        type_ = parse_argument_type(text if text.startswith(("*", "ptr<")) else last)
    return Parameter(
        declared.name,
        position,
        last == "constexpr",
        type_,
        last == "const",
        fixed,
        unaligned,
        declared.default,
        text,
    )


def _annotation_text(annotation: object) -> str:
    """An annotation in words: they may be text, a class, or an object of the language such as `tl.int64`."""
    if annotation is inspect.Parameter.empty:
        return ""
    pointer = getattr(annotation, "pointer_ir_type", None)
    if pointer is not None:
        return str(pointer)
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return str(name).strip("'\" ")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

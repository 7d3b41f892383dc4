"""The C function of a kernel: its name, and of each argument the type and what it promises."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from blocklang.abi import KernelAbi
from blocklang.diagnostics import UsageError
from blocklang.ir.core import Kernel
from blocklang.ir.types import I1, PointerType, ScalarType
from blocklang.runtime.arrays import numpy_dtype

# Words that name no function or parameter in C17 or C++20.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long main mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
    restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
"""
_C_WORDS = frozenset(_WORDS.split())
# Parameters that every function has, in C or in Python.
_TAKEN = frozenset({"grid_x", "grid_y", "grid_z", "num_threads", "grid"})


_OF_PACKAGE = frozenset({"cpu_level"})


class Argument(NamedTuple):
    """One argument of the C function.

    Attributes:
        name: in the kernel.
        c_name: the same, where C allows it.
        type: its type, or that of an array's elements.
        is_array: an address is passed.
        is_written: the kernel may write to the array.
        divisible: the address or the number is a multiple of this, as `:16` promised; 1 if nothing was.
    """

    name: str
    c_name: str
    type: ScalarType
    is_array: bool
    is_written: bool
    divisible: int

    @property
    def c_type(self) -> str:
        """As a parameter is declared; numbers that C has no type for go as their bits."""
        element = c_type(self.type)
        if not self.is_array:
            return f"{element} "
        return f"{element} *" if self.is_written else f"const {element} *"

    @property
    def dtype(self) -> str:
        """NumPy's name of the type."""
        return numpy_dtype(self.type).name

    @property
    def alignment(self) -> int:
        """What an address is a multiple of; of a number, what it is itself."""
        return max(self.divisible, self.type.bytes) if self.is_array else self.divisible


class Prototype(NamedTuple):
    """The C function.

    Attributes:
        name: of the function, the library and the Python package.
        arguments: in order.
        may_alias: overlapping arrays make a difference: one is written and there is another.
        constants: the whole numbers that were compiled in, by name.
        origin: the kernel and its file, for people.
        document: the kernel's docstring, or "".
    """

    name: str
    arguments: tuple[Argument, ...]
    may_alias: bool
    constants: Mapping[str, int]
    origin: str
    document: str

    @property
    def symbols(self) -> list[str]:
        """The functions that a library exports."""
        restrict = [f"{self.name}_restrict"] if self.may_alias else []
        return [self.name, *restrict, f"{self.name}_strerror", f"{self.name}_cpu_level"]


def c_type(type_: ScalarType) -> str:
    """The C type that holds an element."""
    if type_ == I1:
        return "bool"
    if type_.is_float:
        return {32: "float", 64: "double"}.get(type_.bits, f"uint{type_.bits}_t")
    return f"{type_.kind}{type_.bits}_t"


LONGEST_NAME = 100


def check_name(name: str) -> str:
    """The name, if C and Python both can call a function so.

    Raises:
        UsageError: they cannot.
    """
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in _C_WORDS or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} cannot be the name of a function in C and in Python",
            help="choose another with --name: an ASCII letter, then letters, digits and _; no word of C",
        )
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"a name of {len(name)} characters is too long for files, {name[:20]}...",
            help=f"choose another with --name, of at most {LONGEST_NAME}",
        )
    owner = None
    if name in _OF_PACKAGE or name.startswith("blocklang_"):
        owner = "what is built around it"
    elif _is_in_c_library(name):
        owner = "the C library"
    if owner is not None:
        raise UsageError(
            f"{name!r} is a name of {owner}", help=f"choose another with --name, such as my_{name}"
        )
    return name


def _is_in_c_library(name: str) -> bool:
    """Exporting `exp` would give it to everybody in the process who wants that of libm."""
    import ctypes.util

    libraries = (None, ctypes.util.find_library("m"))
    return any(hasattr(ctypes.CDLL(library), name) for library in libraries)


def describe(
    name: str, kernel: Kernel, abi: KernelAbi, constants: Mapping[str, Any], origin: str, document: str | None
) -> Prototype:
    """The C function `name` of a kernel of level block that was compiled to `abi`."""
    arguments = []
    names = c_names(abi.argument_names)
    for position, type_ in enumerate(abi.argument_types):
        facts = kernel.argument_attributes[position]
        divisible = facts.get("divisible", 1)
        assert isinstance(divisible, int)
        element = type_.element if isinstance(type_, PointerType) else type_
        arguments.append(
            Argument(
                abi.argument_names[position],
                names[position],
                element,
                isinstance(type_, PointerType),
                abi.written[position],
                divisible,
            )
        )
    arrays = [argument for argument in arguments if argument.is_array]
    return Prototype(
        check_name(name),
        tuple(arguments),
        len(arrays) > 1 and any(array.is_written for array in arrays),
        {key: value for key, value in constants.items() if isinstance(value, int)},
        origin,
        document or "",
    )


def c_names(names: Iterable[str]) -> list[str]:
    """Each name with an underscore where C or the launcher needs it otherwise; no two alike."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        while plain in _C_WORDS or plain in _TAKEN or keyword.iskeyword(plain) or plain in found:
            plain += "_"
        found.append(plain)
    return found

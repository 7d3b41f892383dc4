"""What code is compiled for: for each parameter its type and known facts, or its value.

The rules, as Triton has them:

    array                 pointer to its element type; "divisible by 16" if its address is
    int                   i32, i64 or u64 by value; 1 is compiled in; "divisible by 16" if it is
    bool                  i1
    float                 f32
    TensorDescriptor      pointer, i32 extents, i64 strides; its block shape and padding are compiled in
    NumPy scalar          its own dtype, no facts
    constexpr, None, str,
    dtype, function       the value itself
    tuple                 each of its items

An annotation such as `tl.int64` forces a type; `do_not_specialize` leaves out value 1 and divisibility.

Specs are interned: equal specs are one object, so a tuple of them hashes and compares fast.
"""

from __future__ import annotations

import math
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from blocklang.diagnostics import ArgumentOverflow, LaunchError
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import F32, I1, I32, I64, U64, PointerType, ScalarType
from blocklang.jit.parameters import NO_DEFAULT, Parameter, Signature, parse_argument_type
from blocklang.jit.switches import NO_SWITCHES, Switches
from blocklang.language.constexpr import constexpr
from blocklang.language.descriptors import DescribedArgument
from blocklang.runtime.arrays import Array, describe_array, element_type_of, is_array, numpy_dtype
from blocklang.runtime.descriptors import TensorDescriptor, describe_descriptor

DIVISOR = 16


class Spec:
    """What the code knows of one argument."""


@dataclass(frozen=True, eq=False)
class TypedSpec(Spec):
    """A run-time argument of a type; `divisible`: its value or address is a multiple of DIVISOR."""

    type: ScalarType | PointerType
    divisible: bool

    def __str__(self) -> str:
        return f"{self.type}{f' divisible by {DIVISOR}' if self.divisible else ''}"


@dataclass(frozen=True, eq=False)
class ConstantSpec(Spec):
    """A value that is compiled in."""

    value: Any

    def __str__(self) -> str:
        return f"= {self.value!r}"


@dataclass(frozen=True, eq=False)
class TupleSpec(Spec):
    """A tuple of arguments: a spec for each item, and the class, a namedtuple's or `tuple`; or what makes a
    tensor descriptor of its base, extents and strides.
    """

    items: tuple[Spec, ...]
    kind: Callable[..., Any]

    def __str__(self) -> str:
        if isinstance(self.kind, DescribedArgument):
            blocks = f"blocks of {list(self.kind.block_shape)}, padding {self.kind.padding!r}"
            return f"descriptor of {self.items[0]} with {blocks}"
        return f"({', '.join(map(str, self.items))})"


_typed: dict[tuple[str, bool, bool, bool], TypedSpec] = {}


def typed_spec(type: ScalarType | PointerType, divisible: bool) -> TypedSpec:
    """The one spec of a type."""
    # Hashing a name takes a tenth of the time of hashing a type.
    if isinstance(type, PointerType):
        key = (type.element.name, True, type.const, divisible)
    else:
        key = (type.name, False, False, divisible)
    spec = _typed.get(key)
    return _typed.setdefault(key, TypedSpec(type, divisible)) if spec is None else spec


# 1, 1.0 and True are different constants, and so are 0.0 and -0.0. A spec lives as long as a kernel that uses
# it.
_constants: weakref.WeakValueDictionary[tuple[type, object], ConstantSpec] = weakref.WeakValueDictionary()


def _identity_of(value: Any) -> object:
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, tuple):
        return tuple((type(item), _identity_of(item)) for item in value)
    return value


def is_same_constant(one: Any, other: Any) -> bool:
    """True if compiling in one constant or the other gives the same code."""
    return type(one) is type(other) and bool(_identity_of(one) == _identity_of(other))


def constant_spec(value: Any) -> ConstantSpec:
    """The one spec of a constant. Raises TypeError if the value cannot be hashed."""
    key = (type(value), _identity_of(value))
    spec = _constants.get(key)
    return _constants.setdefault(key, ConstantSpec(value)) if spec is None else spec


_tuples: weakref.WeakValueDictionary[tuple[Callable[..., Any], tuple[Spec, ...]], TupleSpec] = (
    weakref.WeakValueDictionary()
)


def tuple_spec(kind: Callable[..., Any], items: tuple[Spec, ...]) -> TupleSpec:
    """The one spec of a tuple of specs."""
    spec = _tuples.get((kind, items))
    return _tuples.setdefault((kind, items), TupleSpec(items, kind)) if spec is None else spec


class Leaf(NamedTuple):
    """An argument that a kernel gets at run time: a parameter, or an item of a tuple.

    Attributes:
        name: `x`; `t.0` of an item.
        path: the position of the parameter, then the positions in its tuples.
        value: the array or the bits of the slot; None where only a type is known.
    """

    name: str
    path: tuple[int, ...]
    spec: TypedSpec
    value: Array | int | None


def leaves_of(names: Sequence[str], described: Sequence[Described]) -> Iterator[Leaf]:
    """The run-time arguments in order."""
    for position, (name, (spec, value)) in enumerate(zip(names, described, strict=True)):
        yield from _leaves(name, (position,), spec, value)


def _leaves(name: str, path: tuple[int, ...], spec: Spec, value: Any) -> Iterator[Leaf]:
    if isinstance(spec, TypedSpec):
        yield Leaf(name, path, spec, value)
    elif isinstance(spec, TupleSpec):
        for index, item in enumerate(spec.items):
            yield from _leaves(f"{name}.{index}", (*path, index), item, value[index])


def constants_in(specs: Iterable[Spec]) -> Iterator[Any]:
    """The values that are compiled in, those in tuples too."""
    for spec in specs:
        if isinstance(spec, ConstantSpec):
            yield spec.value
        elif isinstance(spec, TupleSpec):
            yield from constants_in(spec.items)


class Specialisation(NamedTuple):
    """One version of a kernel: a spec per parameter, the alias class of its arrays, and its switches."""

    names: tuple[str, ...]
    specs: tuple[Spec, ...]
    alias: str
    switches: Switches = NO_SWITCHES

    def __str__(self) -> str:
        return (
            ", ".join(f"{n} {s}" for n, s in zip(self.names, self.specs, strict=True))
            + f"; arrays {self.alias}"
        )

    @property
    def signature(self) -> str:
        """The types of the run-time arguments in Triton's notation, as `--sig` takes them."""
        return ",".join(
            short_name(s.type) + (f":{DIVISOR}" if s.divisible else "")
            for s in self.specs
            if isinstance(s, TypedSpec)
        )

    @property
    def constants(self) -> dict[str, Any]:
        """The values that are compiled in, by parameter."""
        return {
            n: s.value for n, s in zip(self.names, self.specs, strict=True) if isinstance(s, ConstantSpec)
        }


def short_name(type_: ScalarType | PointerType) -> str:
    """Triton's short name of a type: `*fp32`, `i64`, `bf16`."""
    if isinstance(type_, PointerType):
        return f"*{short_name(type_.element)}"
    return f"fp{type_.name[1:]}" if type_.is_float and type_.name != "bf16" else type_.name


# A spec, and the array or the bits of the argument's slot; of a tuple, a tuple of these.
Payload = Any
Described = tuple[Spec, Payload]


def describe(parameter: Parameter, value: Any, signature: Signature) -> Described:
    """The spec of an argument, and what goes into its slot.

    Raises:
        LaunchError: the argument has no meaning for this parameter.
    """
    if isinstance(value, constexpr):
        value = value.value
    if parameter.is_constexpr:
        return _describe_constexpr(parameter, value, signature), None
    kind = type(value)
    if kind is int:
        return _describe_int(parameter, value, signature)
    if kind is float:
        return _describe_float(parameter, value, signature)
    if is_array(value):
        return _describe_array(parameter, value, signature)
    if kind is bool:
        return _describe_bool(parameter, value)
    if isinstance(value, np.generic):
        return _describe_numpy_scalar(parameter, value, signature)
    return _describe_other(parameter, value, signature)


def _describe_array(parameter: Parameter, value: Any, signature: Signature) -> Described:
    try:
        array = describe_array(value)
    except LaunchError as error:
        raise signature.error(f"argument {parameter.name!r}: {error.message}", error.help) from error
    pointer = PointerType(array.element, const=parameter.is_const)
    if parameter.type is not None:
        pointer = _annotated_pointer(parameter, parameter.type, array, signature)
    exact = parameter.do_not_specialize or parameter.do_not_specialize_on_alignment
    return typed_spec(pointer, not exact and array.address % DIVISOR == 0), array


def _annotated_pointer(
    parameter: Parameter, type_: ScalarType | PointerType, array: Array, signature: Signature
) -> PointerType:
    if not isinstance(type_, PointerType) or type_.element != array.element:
        raise signature.error(
            f"argument {parameter.name!r} is an array of {array.element}, but is annotated {parameter.type}",
            f"pass an array of that type, or drop the annotation: the kernel is {signature}",
        )
    return type_


def _describe_int(parameter: Parameter, value: int, signature: Signature) -> Described:
    type_ = parameter.type
    if type_ is None:
        if value == 1 and not parameter.do_not_specialize:
            return constant_spec(1), None
        type_ = next((t for t in (I32, I64, U64) if t.minimum <= value <= t.maximum), None)
        if type_ is None:
            raise signature.error(
                f"argument {parameter.name!r} is {value}, which no 64-bit integer holds",
                "integers from -2^63 to 2^64 - 1 can be passed",
                ArgumentOverflow,
            )
    elif isinstance(type_, PointerType):
        raise _not_an_array(parameter, "an integer", signature)
    elif type_.is_float:
        return typed_spec(type_, False), float_bits(type_, _as_float(value))
    elif not type_.minimum <= value <= type_.maximum:
        raise signature.error(
            f"argument {parameter.name!r} is {value}, which its annotation {type_} does not hold",
            f"pass {type_.minimum} to {type_.maximum}, or annotate a wider type",
        )
    exact = parameter.do_not_specialize or parameter.do_not_specialize_on_alignment
    divisible = type_ is not I1 and not exact and value % DIVISOR == 0
    return typed_spec(type_, divisible), value & 0xFFFF_FFFF_FFFF_FFFF


def _describe_float(parameter: Parameter, value: float, signature: Signature) -> Described:
    type_ = F32 if parameter.type is None else parameter.type
    if isinstance(type_, PointerType):
        raise _not_an_array(parameter, "a float", signature)
    if not type_.is_float:
        raise signature.error(
            f"argument {parameter.name!r} is the float {value!r}, but is annotated {type_}",
            "pass an integer, or annotate a float type",
        )
    return typed_spec(type_, False), float_bits(type_, value)


def float_bits(type_: ScalarType, value: float) -> int:
    """The bits of a Python float rounded to a float type, to nearest even, overflow to infinity (an 8-bit
    float saturates)."""
    if type_.is_float8:
        return FLOAT8[type_.name].encode(value)
    with np.errstate(over="ignore"):
        rounded = np.float64(value).astype(numpy_dtype(type_))
    return int.from_bytes(rounded.tobytes(), "little")


def _as_float(value: int) -> float:
    """The float nearest to an integer; infinity for one beyond them all, as for too large a float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _describe_bool(parameter: Parameter, value: bool) -> Described:
    if isinstance(parameter.type, ScalarType):
        type_ = parameter.type
        return typed_spec(type_, False), float_bits(type_, float(value)) if type_.is_float else int(value)
    return typed_spec(I1, False), int(value)


def _describe_numpy_scalar(parameter: Parameter, value: Any, signature: Signature) -> Described:
    type_ = element_type_of(value.dtype)
    if type_ is None:
        raise signature.error(
            f"argument {parameter.name!r} is a scalar of {value.dtype}, which has no meaning in a kernel",
            "pass a bool, an integer or a float",
        )
    if parameter.type is not None and parameter.type != type_:
        raise signature.error(
            f"argument {parameter.name!r} is a scalar of {type_}, but is annotated {parameter.type}",
            f"convert it, or pass a Python number: the kernel is {signature}",
        )
    return typed_spec(type_, False), int.from_bytes(value.tobytes(), "little")


def _describe_descriptor(parameter: Parameter, value: TensorDescriptor, signature: Signature) -> Described:
    """The base, the extents and the strides but the last, as a tuple; the rest is compiled in."""
    try:
        described = describe_descriptor(value)
    except LaunchError as error:
        raise signature.error(f"argument {parameter.name!r}: {error.message}", error.help) from error
    array, extents, strides = described.array, described.shape, described.strides[:-1]
    exact = parameter.do_not_specialize or parameter.do_not_specialize_on_alignment
    pointer = PointerType(array.element, const=parameter.is_const)
    specs = (
        typed_spec(pointer, not exact and array.address % DIVISOR == 0),
        tuple_spec(tuple, (typed_spec(I32, False),) * len(extents)),
        tuple_spec(tuple, (typed_spec(I64, False),) * len(strides)),
    )
    kind = DescribedArgument(described.block_shape, described.padding)
    return tuple_spec(kind, specs), (array, extents, tuple(n & 0xFFFF_FFFF_FFFF_FFFF for n in strides))


def _describe_other(parameter: Parameter, value: Any, signature: Signature) -> Described:
    if isinstance(value, TensorDescriptor):
        return _describe_descriptor(parameter, value, signature)
    if isinstance(value, tuple):
        return _describe_tuple(parameter, value, signature)
    if isinstance(value, (list, dict, set, complex, bytes, bytearray, memoryview)):
        raise signature.error(
            f"argument {parameter.name!r} is a {type(value).__name__}, which is no run-time argument",
            "pass a NumPy array, a number, or annotate the parameter `constexpr`",
        )
    return _describe_constexpr(parameter, value, signature), None


def _describe_tuple(parameter: Parameter, value: tuple[Any, ...], signature: Signature) -> Described:
    if parameter.type is not None:
        raise signature.error(
            f"argument {parameter.name!r} is a tuple, but is annotated {parameter.type}",
            "drop the annotation",
        )
    described = [
        (constant_spec(item), None)
        if isinstance(item, constexpr)
        else describe(replace(parameter, name=f"{parameter.name}[{index}]"), item, signature)
        for index, item in enumerate(value)
    ]
    kind = type(value) if hasattr(value, "_fields") else tuple
    return tuple_spec(kind, tuple(spec for spec, _ in described)), tuple(payload for _, payload in described)


def _describe_constexpr(parameter: Parameter, value: Any, signature: Signature) -> ConstantSpec:
    if is_array(value):
        raise signature.error(
            f"argument {parameter.name!r} is constexpr and got an array",
            f"pass a number, or drop the annotation: the kernel is {signature}",
        )
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, list):
        value = tuple(value)
    try:
        return constant_spec(value)
    except TypeError:
        raise signature.error(
            f"argument {parameter.name!r} is constexpr and got a {type(value).__name__}, which has no hash",
            "pass a number, string, tuple, dtype or function",
        ) from None


def describe_or_imagine(parameter: Parameter, value: Any, signature: Signature) -> Described:
    """As `describe`, with a dtype in the place of a run-time argument standing for an aligned array of it."""
    if not parameter.is_constexpr and (isinstance(value, type) or hasattr(value, "itemsize")):
        name = getattr(value, "__name__", None) or str(value).rpartition(".")[2]
        type_ = parse_argument_type(f"*{name}")
        if type_ is not None:
            return typed_spec(type_, True), None
    return describe(parameter, value, signature)


def specs_from_text(
    signature: Signature, types: str | Sequence[str], constants: Mapping[str, Any]
) -> tuple[Spec, ...]:
    """The specs that `"*fp32:16,i32"` and values for the rest say; see `JITFunction.specialise`."""
    texts = [text.strip() for text in (types.split(",") if isinstance(types, str) else types) if text.strip()]
    for name in constants:
        if name not in signature.by_name:
            raise signature.error(
                f"{signature.name}() has no parameter {name!r}", f"the kernel is {signature}"
            )
    specs: list[Spec] = []
    for parameter in signature.parameters:
        if parameter.name in constants:
            specs.append(constant_spec(constants[parameter.name]))
        elif not parameter.is_constexpr and texts:
            specs.append(_spec_from_text(parameter, texts.pop(0), signature))
        elif parameter.default is not NO_DEFAULT:
            specs.append(describe(parameter, parameter.default, signature)[0])
        else:
            kind = "value" if parameter.is_constexpr else "type"
            raise signature.error(
                f"no {kind} is given for parameter {parameter.name!r}", f"the kernel is {signature}"
            )
    if texts:
        raise signature.error(
            f"the signature has {len(texts)} types more than there are parameters: {', '.join(texts)}",
            f"the kernel is {signature}",
        )
    return tuple(specs)


def _spec_from_text(parameter: Parameter, text: str, signature: Signature) -> TypedSpec:
    name, _, divisor = text.partition(":")
    type_ = parse_argument_type(name)
    if type_ is None or divisor not in ("", str(DIVISOR)):
        raise signature.error(
            f"{text!r}, given for parameter {parameter.name!r}, is no type of an argument",
            "write i1, i8 to i64, u8 to u64, fp8e5 and its kin, fp16, bf16, fp32 or fp64, "
            "`*` before one for an array of it, "
            "and `:16` after it if its value or address is divisible by 16",
        )
    return typed_spec(type_, divisor != "")


def _not_an_array(parameter: Parameter, what: str, signature: Signature) -> LaunchError:
    return signature.error(
        f"argument {parameter.name!r} is {what}, but is annotated {parameter.type}", "pass an array"
    )


def slots_of(values: Sequence[int]) -> bytes:
    """The argument slots of a launch."""
    return struct.pack(f"<{len(values)}Q", *values)

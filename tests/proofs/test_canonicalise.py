"""Every integer rewrite of `canonicalise`, proved: for all values of the operands nothing changes.

The rules act on constants that are numbers, so each rule gets every constant that its text names (0, 1, all
ones, the extremes, their neighbours) at width 8, signed and unsigned, and at the widths that users have.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator

import pytest

from blocklang.ir.core import Kernel
from blocklang.ir.printer import print_kernel
from blocklang.ir.types import SCALARS, ScalarType
from blocklang.passes import simplify_elementwise as rules
from blocklang.passes.canonicalise import canonicalise
from tests.passes.cases import read_kernel
from tests.proofs.symbolic import counterexample, difference

ARITHMETIC = ("add", "sub", "mul", "idiv", "rem", "and", "or", "xor", "shl", "shr", "minimum", "maximum")
LINEAR = ("add", "sub", "and", "or", "xor", "minimum", "maximum")
NARROW = ("i8", "u8")
WIDE = ("i32", "u32", "i64", "u64")


def scalar(name: str) -> ScalarType:
    return SCALARS[name]


def constants_of(name: str) -> list[int]:
    type = scalar(name)
    numbers = {0, 1, 2, 3, 7, 8, type.minimum, type.minimum + 1, type.maximum, type.maximum - 1}
    return sorted(numbers | ({-1, -2} if type.is_signed else set()))


def kernel_of(type: str, body: str, result: str) -> str:
    arguments = f"%p: ptr<{result}>, %x: {type}, %y: {type}, %c: i1"
    return f"kernel @k({arguments}) {{\n{body}  store %p, %r\n  return\n}}\n"


def prove(text: str) -> Kernel:
    """The kernel after `canonicalise`, which is proved to do the same."""
    before, after = read_kernel(text), read_kernel(text)
    canonicalise(after)
    found = counterexample(difference(before, after))
    assert found is None, f"{text}\nbecame\n{print_kernel(after)}\nwhich differs for {found}"
    return after


def binary_with_constant(op: str, type: str) -> Iterator[str]:
    for number in constants_of(type):
        constant = f"  %k = constant value={number} : {type}\n"
        yield constant + f"  %r = {op} %x, %k : {type}\n"
        yield constant + f"  %r = {op} %k, %x : {type}\n"


@pytest.mark.parametrize("type", NARROW)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_an_operation_with_a_constant(op: str, type: str) -> None:
    for body in binary_with_constant(op, type):
        prove(kernel_of(type, body, type))


@pytest.mark.parametrize("type", WIDE)
@pytest.mark.parametrize("op", [*LINEAR, "shl", "shr"])
def test_an_operation_with_a_constant_at_the_widths_of_users(op: str, type: str) -> None:
    for body in binary_with_constant(op, type):
        prove(kernel_of(type, body, type))


@pytest.mark.parametrize("type", [*NARROW, *WIDE])
@pytest.mark.parametrize("op", ARITHMETIC)
def test_an_operation_of_a_value_with_itself(op: str, type: str) -> None:
    prove(kernel_of(type, f"  %r = {op} %x, %x : {type}\n", type))


@pytest.mark.parametrize("type", NARROW)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_a_chain_with_two_constants(op: str, type: str) -> None:
    """Also the chains that mix addition and subtraction."""
    second = {"add": "sub", "sub": "add"}.get(op, op)
    for (a, b), last in itertools.product(itertools.combinations(constants_of(type), 2), {op, second}):
        body = (
            f"  %a = constant value={a} : {type}\n  %b = constant value={b} : {type}\n"
            f"  %s = {op} %x, %a : {type}\n  %r = {last} %s, %b : {type}\n"
        )
        prove(kernel_of(type, body, type))


@pytest.mark.parametrize("type", [*NARROW, "i32", "u64"])
@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(predicate: str, type: str) -> None:
    bodies = [f'  %r = cmp %x, %x, predicate="{predicate}" : i1\n']
    for number in constants_of(type):
        constant = f"  %k = constant value={number} : {type}\n"
        bodies.append(constant + f'  %r = cmp %k, %x, predicate="{predicate}" : i1\n')
        bodies.append(constant + f'  %r = cmp %x, %k, predicate="{predicate}" : i1\n')
    bodies.append(
        f'  %s = cmp %x, %y, predicate="{predicate}" : i1\n  %t = constant value=true : i1\n'
        "  %r = xor %s, %t : i1\n"
    )
    for body in bodies:
        prove(kernel_of(type, body, "i1"))


@pytest.mark.parametrize("op", ["and", "or", "xor", "add", "sub", "mul", "minimum", "maximum"])
def test_operations_of_booleans(op: str) -> None:
    for number in ("true", "false"):
        constant = f"  %k = constant value={number} : i1\n"
        prove(kernel_of("i1", constant + f"  %r = {op} %x, %k : i1\n", "i1"))
        prove(kernel_of("i1", constant + f"  %r = {op} %k, %x : i1\n", "i1"))
    prove(kernel_of("i1", f"  %r = {op} %x, %x : i1\n", "i1"))


def test_choices() -> None:
    for number in ("true", "false"):
        prove(kernel_of("i8", f"  %k = constant value={number} : i1\n  %r = select %k, %x, %y : i8\n", "i8"))
    prove(kernel_of("i8", "  %r = select %c, %x, %x : i8\n", "i8"))
    for a, b in itertools.product(("true", "false"), repeat=2):
        constants = f"  %a = constant value={a} : i1\n  %b = constant value={b} : i1\n"
        prove(kernel_of("i8", constants + "  %r = select %c, %a, %b : i1\n", "i1"))


INTEGERS = ("i1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")


@pytest.mark.parametrize("source", INTEGERS)
def test_casts_of_casts(source: str) -> None:
    """All 729 ways from one integer type to another by way of a third."""
    for between, target in itertools.product(INTEGERS, repeat=2):
        body = f"  %s = cast %x : {between}\n  %r = cast %s : {target}\n"
        prove(kernel_of(source, body, target))


@pytest.mark.parametrize("type", [*NARROW, "i32"])
def test_signs(type: str) -> None:
    for first, second in itertools.product(("neg", "abs"), repeat=2):
        prove(kernel_of(type, f"  %s = {first} %x : {type}\n  %r = {second} %s : {type}\n", type))


def test_bitcasts() -> None:
    prove(kernel_of("i32", "  %s = bitcast %x : u32\n  %r = bitcast %s : i32\n", "i32"))
    prove(kernel_of("i8", "  %s = bitcast %x : u8\n  %t = bitcast %s : i8\n  %r = neg %t : i8\n", "i8"))


def test_every_rule_was_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases above are cases of every rule: none is proved by never being applied."""
    fired: set[str] = set()

    def watched(rule: rules.Rule) -> rules.Rule:
        def run(op: object) -> bool:
            applied = rule(op)  # type: ignore[arg-type]
            if applied:
                fired.add(rule.__name__)
            return applied

        return run

    names = {rule.__name__ for group in rules._RULES.values() for rule in group}
    watching = {cls: tuple(map(watched, group)) for cls, group in rules._RULES.items()}
    monkeypatch.setattr(rules, "_RULES", watching)
    monkeypatch.setattr(importlib.import_module("blocklang.passes.canonicalise"), "_rules", {})
    for op, type in itertools.product(ARITHMETIC, NARROW):
        test_an_operation_with_a_constant(op, type)
        test_an_operation_of_a_value_with_itself(op, type)
    test_a_chain_with_two_constants("add", "i8")
    test_comparisons("lt", "i8")
    test_comparisons("eq", "i8")
    test_choices()
    test_casts_of_casts("i16")
    test_signs("i8")
    test_bitcasts()
    test_casts_of_casts("i8")
    assert fired == names


# ---- the laws behind the rules that compute with the constants ----


@pytest.mark.parametrize("type", NARROW)
@pytest.mark.parametrize("op", ["add", "mul", "and", "or", "xor", "minimum", "maximum"])
def test_folding_two_constants_is_associativity(op: str, type: str) -> None:
    """(x op a) op b = x op (a op b) for all x, a and b: a chain may fold whatever its constants are."""
    left = read_kernel(kernel_of_three(type, f"  %s = {op} %x, %a : {type}\n  %r = {op} %s, %b : {type}\n"))
    right = read_kernel(kernel_of_three(type, f"  %s = {op} %a, %b : {type}\n  %r = {op} %x, %s : {type}\n"))
    assert counterexample(difference(left, right)) is None


@pytest.mark.parametrize("type", NARROW)
@pytest.mark.parametrize("op", ["add", "mul", "and", "or", "xor", "minimum", "maximum", "umulhi"])
def test_moving_a_constant_to_the_right_is_commutativity(op: str, type: str) -> None:
    left = read_kernel(kernel_of_three(type, f"  %r = {op} %a, %b : {type}\n"))
    right = read_kernel(kernel_of_three(type, f"  %r = {op} %b, %a : {type}\n"))
    assert counterexample(difference(left, right)) is None


def kernel_of_three(type: str, body: str) -> str:
    arguments = ", ".join(f"%{name}: {type}" for name in "xab")
    return f"kernel @k(%p: ptr<{type}>, {arguments}) {{\n{body}  store %p, %r\n  return\n}}\n"


def test_a_wrong_rewrite_is_found() -> None:
    """The prover proves something: x / 2 is not x >> 1 for negative x, and wraps are not forgotten."""
    body = "  %k = constant value={} : i8\n  %r = {} %x, %k : i8\n"
    halved = read_kernel(kernel_of("i8", body.format(2, "idiv"), "i8"))
    shifted = read_kernel(kernel_of("i8", body.format(1, "shr"), "i8"))
    assert counterexample(difference(halved, shifted)) is not None
    larger = "  %k = constant value=1 : i8\n  %s = add %x, %k : i8\n"
    wraps = read_kernel(kernel_of("i8", larger + '  %r = cmp %s, %x, predicate="gt" : i1\n', "i1"))
    always = read_kernel(kernel_of("i8", "  %r = constant value=true : i1\n", "i1"))
    assert counterexample(difference(wraps, always)) is not None

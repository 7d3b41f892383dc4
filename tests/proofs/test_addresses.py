"""The rules about addresses and masks, proved: guards, affine forms, bounds, wrapped remainders, steps.

Each placed kernel runs through `guard_accesses` and `narrow_loops`; for every value of its arguments and
every index, the loops after it must touch the addresses, store the values and fold the lanes of the loops
before it. Index arithmetic is 8, 16 and 32 bits wide, so that it wraps within reach of the prover.
"""

from __future__ import annotations

import itertools

import pytest
import z3

from blocklang.analysis.index_steps import IndexSteps
from blocklang.ir.core import Kernel
from blocklang.ir.printer import print_kernel
from blocklang.ir.verifier import verify
from blocklang.passes.canonicalise import canonicalise
from blocklang.passes.guard_accesses import guard_accesses
from blocklang.passes.narrow_loops import narrow_loops
from tests.passes.cases import read_kernel
from tests.proofs.symbolic import Execution, counterexample, difference, is_signed, width_of

PASSES = (guard_accesses, canonicalise, narrow_loops, canonicalise)


def prove(text: str, *, must_change: bool = True) -> None:
    before, after = read_kernel(text), read_kernel(text)
    for run in PASSES:
        run(after)
        verify(after)
        found = counterexample(difference(before, after))
        assert found is None, (
            f"{text}\nbecame\n{print_kernel(after)}\nafter {run.__name__}; differs for {found}"
        )
    unchanged = read_kernel(text)
    canonicalise(unchanged)
    assert not must_change or print_kernel(unchanged) != print_kernel(after)


def loop(type: str, body: str, *, extent: int = 12) -> str:
    """A loop over lanes with `%a`, its index as an integer of `type`."""
    return (
        f"placed @k(%x: ptr<i8>, %b: {type}, %n: {type}, %m: {type}, %v: i8) {{\n"
        f"  %c0 = constant value=0 : i64\n  %end = constant value={extent} : i64\n"
        f"  %two = constant value=2 : {type}\n  %five = constant value=5 : {type}\n"
        "  lanes %c0, %end, width=4 {\n    (%i: i64):\n"
        f"    %a = cast %i : {type}\n{body}    yield\n  }}\n  return\n}}\n"
    )


STORE = "    %p = offset %x, %o : ptr<i8>\n    store %p, %v\n"
MASKED = "    %p = offset %x, %o : ptr<i8>\n    store %p, %v, mask=%k\n"
TYPES = ("i8", "u8", "i16", "i32", "u32", "i64")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    "offset",
    [
        "    %o = add %b, %a : {t}\n",
        "    %o = sub %b, %a : {t}\n",
        "    %o = sub %a, %b : {t}\n",
        "    %s = mul %a, %two : {t}\n    %o = add %s, %b : {t}\n",
        "    %s = add %b, %a : {t}\n    %o = add %s, %n : {t}\n",
        "    %s = add %b, %a : {t}\n    %l = minimum %s, %n : {t}\n    %o = add %l, %five : {t}\n",
        "    %s = sub %b, %a : {t}\n    %l = maximum %s, %five : {t}\n    %o = sub %l, %two : {t}\n",
    ],
)
def test_offsets_that_may_wrap(offset: str, type: str) -> None:
    prove(loop(type, offset.format(t=type) + STORE), must_change=type != "i64")


@pytest.mark.parametrize("type", ["i8", "i16", "u8"])
def test_products_with_a_scalar(type: str) -> None:
    body = f"    %s = mul %a, %n : {type}\n    %o = add %s, %b : {type}\n"
    prove(loop(type, body + STORE, extent=4))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("swapped", [False, True], ids=("index-left", "index-right"))
def test_masks_that_follow_the_index(predicate: str, type: str, swapped: bool) -> None:
    sides = "%n, %o" if swapped else "%o, %n"
    body = f'    %o = add %b, %a : {type}\n    %k = cmp {sides}, predicate="{predicate}" : i1\n'
    prove(loop(type, body + MASKED), must_change=type != "i64" or predicate not in ("eq", "ne"))


@pytest.mark.parametrize("type", ["i8", "i16", "i32"])
def test_masks_of_which_both_sides_move(type: str) -> None:
    for predicate, (left, right) in itertools.product(
        ("lt", "ge"), (("%a", "%s"), ("%s", "%a"), ("%d", "%a"))
    ):
        body = (
            f"    %s = mul %a, %two : {type}\n    %d = sub %b, %a : {type}\n    %o = add %b, %a : {type}\n"
            f'    %k = cmp {left}, {right}, predicate="{predicate}" : i1\n'
        )
        prove(loop(type, body + MASKED))


@pytest.mark.parametrize("type", ["i8", "u8", "i16", "i32"])
def test_two_masks_at_once(type: str) -> None:
    body = (
        f"    %o = add %b, %a : {type}\n"
        '    %k0 = cmp %o, %n, predicate="lt" : i1\n    %k1 = cmp %o, %m, predicate="ge" : i1\n'
        "    %k = and %k0, %k1 : i1\n"
    )
    prove(loop(type, body + MASKED))


@pytest.mark.parametrize("type", ["i8", "u8", "i16"])
def test_remainders_that_wrap_once(type: str) -> None:
    body = f"    %s = add %b, %a : {type}\n    %o = rem %s, %n : {type}\n"
    prove(loop(type, body + STORE, extent=6))


@pytest.mark.parametrize("type", ["i8", "i16"])
def test_groups_of_rows(type: str) -> None:
    prove(
        f"placed @k(%x: ptr<i8>, %b: {type}, %n: {type}, %m: {type}, %v: i8) {{\n"
        "  %c0 = constant value=0 : i64\n  %c3 = constant value=3 : i64\n  %c5 = constant value=5 : i64\n"
        "  group %c0, %c3 {\n    (%g: i64):\n"
        f"    %row = cast %g : {type}\n    %r = mul %row, %n : {type}\n"
        "    lanes %c0, %c5, width=4 {\n      (%i: i64):\n"
        f"      %a = cast %i : {type}\n      %s = add %r, %a : {type}\n      %o = add %s, %b : {type}\n"
        '      %k0 = cmp %a, %m, predicate="lt" : i1\n      %k1 = cmp %row, %b, predicate="lt" : i1\n'
        "      %k = and %k0, %k1 : i1\n"
        "      %p = offset %x, %o : ptr<i8>\n      store %p, %v, mask=%k\n"
        "      yield\n    }\n    yield\n  }\n"
        "  return\n}\n"
    )


@pytest.mark.parametrize("combine", ["sum", "max", "min"])
@pytest.mark.parametrize("mask", ["%k", "%both"])
def test_folds_end_where_their_padding_begins(combine: str, mask: str) -> None:
    prove(
        "placed @k(%x: ptr<i16>, %b: i16, %n: i16, %m: i64) {\n"
        "  %c0 = constant value=0 : i64\n  %end = constant value=9 : i64\n  %zero = constant value=-3 : i16\n"
        f'  %r = lanes %c0, %end, width=4, combines=["{combine}"], extent=9 : i16 {{\n    (%i: i64):\n'
        "    %a = cast %i : i16\n    %o = add %b, %a : i16\n    %p = offset %x, %o : ptr<i16>\n"
        '    %k = cmp %o, %n, predicate="lt" : i1\n    %l = cmp %i, %m, predicate="lt" : i1\n'
        "    %both = and %k, %l : i1\n"
        f"    %v = load %p, mask={mask}, other=%zero : i16\n    %y = add %v, %b : i16\n    yield %y\n  }}\n"
        "  return\n}\n"
    )


def test_steps_of_integers() -> None:
    """`IndexSteps`: what is added when the index grows by one, modulo the width, wraps included."""
    for type in ("i8", "u8", "i16", "i32"):
        kernel = read_kernel(
            loop(
                type,
                f"    %s = mul %a, %five : {type}\n    %d = sub %b, %a : {type}\n"
                f"    %e = sub %s, %d : {type}\n"
                f"    %o = add %e, %n : {type}\n    %w = cast %o : i64\n    %q = mul %d, %five : {type}\n"
                + STORE,
            )
        )
        _prove_steps(kernel)


def _prove_steps(kernel: Kernel) -> None:
    steps = IndexSteps()
    (lanes,) = [op for op in kernel.walk() if op.name == "lanes"]
    index = lanes.regions[0].args[0]
    now = Execution({})
    now.run(kernel)
    term = now.terms[index]
    proved = 0
    for op in lanes.regions[0].ops:
        for value in op.results:
            step = steps.of(value, index)
            if step is None or value.type.__class__.__name__ == "PointerType":
                continue
            width = _narrowest(value)
            here = now.terms[value]
            following = z3.substitute(here, (term, term + 1))
            grown = z3.Extract(width - 1, 0, following) - z3.Extract(width - 1, 0, here)
            assert counterexample(grown != z3.BitVecVal(step, width)) is None, value.name
            proved += 1
    assert proved >= 6
    assert is_signed(index)


def _narrowest(value: object) -> int:
    """The narrowest width on the way to a value: modulo two to that power its step is exact."""
    stack, width = [value], 64
    while stack:
        current = stack.pop()
        width = min(width, width_of(current))  # type: ignore[arg-type]
        op = current.defining_op  # type: ignore[attr-defined]
        stack += op.operands if op is not None else []
    return width


def test_a_missing_guard_is_found() -> None:
    """The prover proves something: without its test, the affine form is wrong where the sum wraps."""
    text = loop("i8", "    %o = add %b, %a : i8\n" + STORE)
    unguarded = text.replace("%o = add %b, %a : i8", "%w = cast %b : i64\n    %o = add %w, %i : i64")
    assert counterexample(difference(read_kernel(text), read_kernel(unguarded))) is not None

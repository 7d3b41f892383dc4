"""The expression language of device files: what it takes, what it refuses, and what it gives."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocklang.target.formulas import FLAG, NUMBER, TEXT, FormulaError, Value, parse_formula

KINDS = {"N": NUMBER, "M": NUMBER, "wide": FLAG, "dtype": TEXT}
VALUES: dict[str, Value] = {"N": 100, "M": 7, "wide": True, "dtype": "bf16"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(64, N)", 100),
        ("min(N, M, 3)", 3),
        ("N // M + N % M", 16),
        ("-N + +M", -93),
        ("ceil(N / 3) - floor(N / 3)", 1),
        ("abs(M - N)", 93),
        ('N * (4 if dtype == "f32" else 1)', 100),
        ('1 if dtype in ("bf16", "f16") and not wide else 2', 2),
        ('1 if dtype not in ("f32",) or wide else 2', 1),
        ("1 if 0 < M <= 7 < N else 0", 1),
        ("1 if 0 < M < 7 < N else 0", 0),
        ("1 if wide else absent_is_not_reached", None),
        (" 2 * N ", 200),
    ],
)
def test_values(text: str, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(FormulaError, match="expected a known name, got absent_is_not_reached"):
            parse_formula(text, KINDS)
    else:
        assert parse_formula(text, KINDS).evaluate(VALUES) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an expression"),
        ("N +", "expected an expression"),
        ("n", "expected a known name, got n"),
        ("N.real", "expected an expression of a device file, got N.real"),
        ("N[0]", "got N[0]"),
        ("open('x')", "got open('x')"),
        ("__import__('os')", "got __import__('os')"),
        ("(lambda: 1)()", "expected an expression of a device file"),
        ("[N for N in (1,)]", "expected an expression of a device file"),
        ("N ** N", "got N ** N"),
        ("N << 3", "got N << 3"),
        ("max(*N)", "expected two or more arguments of max"),
        ("max(N, *N)", "expected an expression of a device file, got *N"),
        ("max(N, key=N)", "got max(N, key=N)"),
        ("max(N)", "expected two or more arguments of max"),
        ("ceil(N, M)", "expected one argument of ceil"),
        ("f'{N}'", "expected an expression of a device file"),
        ("1j", "expected an expression of a device file"),
        ("b'x'", "expected an expression of a device file"),
        ("None", "expected an expression of a device file, got None"),
        ("wide", "expected a number, got a flag: wide"),
        ("dtype + 1", "expected a number, got a text: dtype"),
        ("1 if N else 2", "expected a flag, got a number: N"),
        ("1 if dtype == 3 else 2", "expected a text, got a number: 3"),
        ("1 if dtype < 'x' else 2", "expected a number, got a text: dtype"),
        ("1 if wide else dtype", "expected a number, got a text: dtype"),
        ("1 if dtype in 'bf16' else 2", "expected a tuple after `in`"),
        ("1 if N is M else 2", "expected a comparison"),
        ("N" * 1001, "expected at most 1000 characters"),
        ("-" * 990 + "N", "expected an expression"),
        ("(" * 500 + "N" + ")" * 400, "expected an expression"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_formula(text, KINDS)
    assert message in str(caught.value)


def test_a_misspelt_name_gets_a_guess() -> None:
    with pytest.raises(FormulaError) as caught:
        parse_formula("max(MIN, N)", KINDS | {"MIN_II": NUMBER})
    assert caught.value.help is not None
    assert caught.value.help.startswith("did you mean MIN_II?")


def test_names_and_missing_values() -> None:
    formula = parse_formula("max(N, M) if wide else M", KINDS)
    assert formula.names == ("M", "N", "wide")
    assert formula.evaluate({"wide": False, "M": 3}) == 3  # the other branch is not reached
    with pytest.raises(FormulaError, match="N has no value"):
        formula.evaluate({"wide": True, "M": 3})


def test_division_by_zero() -> None:
    with pytest.raises(FormulaError, match="divides by zero"):
        parse_formula("N / (M - 7)", KINDS).evaluate(VALUES)


# ---- properties: the language is Python's, where it takes the text ----

_NUMBERS = st.one_of(st.sampled_from(["N", "M"]), st.integers(0, 99).map(str))


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    flags = st.one_of(
        st.just("wide"),
        st.builds("({} {} {})".format, inner, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), inner),
        st.builds("(dtype {} ('bf16', 'f32'))".format, st.sampled_from(["in", "not in"])),
    )
    joined = st.one_of(
        flags, st.builds("({} {} {})".format, flags, st.sampled_from(["and", "or"]), flags),
        st.builds("(not {})".format, flags),
    )  # fmt: skip
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["max", "min"]), inner, inner),
        st.builds("{}({})".format, st.sampled_from(["ceil", "floor", "abs", "-"]), inner),
        st.builds("({} if {} else {})".format, inner, joined, inner),
    )


EXPRESSIONS = st.recursive(_NUMBERS, _grow, max_leaves=12)


@given(EXPRESSIONS, st.integers(0, 999), st.integers(1, 999), st.booleans(), st.sampled_from(["f32", "f16"]))
def test_agrees_with_python(text: str, n: int, m: int, wide: bool, dtype: str) -> None:
    values: dict[str, Value] = {"N": n, "M": m, "wide": wide, "dtype": dtype}
    functions: dict[str, Any] = {"max": max, "min": min, "ceil": math.ceil, "floor": math.floor, "abs": abs}
    formula = parse_formula(text, KINDS)
    try:
        expected = float(eval(text, {"__builtins__": {}}, {**values, **functions}))
    except ZeroDivisionError:
        with pytest.raises(FormulaError, match="divides by zero"):
            formula.evaluate(values)
        return
    assert formula.evaluate(values) == expected
    assert set(formula.names) <= set(KINDS)


@given(st.text(max_size=40))
def test_any_text_is_answered(text: str) -> None:
    """A formula or a `FormulaError`: no other way out."""
    try:
        formula = parse_formula(text, KINDS)
    except FormulaError:
        return
    with suppress(FormulaError):
        assert math.isfinite(formula.evaluate(VALUES))


@pytest.mark.parametrize("text", ["1e400", "N * 1e308 * 1e308", "ceil(1e308 * 10)", "1e400 // 2", "9" * 900])
def test_no_finite_number(text: str) -> None:
    with pytest.raises(FormulaError, match="gives no finite number"):
        parse_formula(text, KINDS).evaluate(VALUES)

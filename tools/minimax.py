"""Compute the polynomial coefficients of blocklang's maths, and write them to
`blocklang/maths/coefficients.py`.

    python tools/minimax.py            print the generated module
    python tools/minimax.py --write    replace blocklang/maths/coefficients.py

Every table is the minimax polynomial of a function under a weight, found by the Remez exchange at high
precision, with the coefficients then rounded to the target format.

This is a tool of the project's developers: it needs mpmath, and nothing that blocklang installs imports it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mpmath
import numpy as np
from mpmath import mpf

OUTPUT = Path(__file__).resolve().parent.parent / "blocklang" / "maths" / "coefficients.py"
SAMPLES_PER_TERM = 24
EXCHANGES = 60
TOLERANCE = mpf(10) ** -3
TINY = mpf(10) ** -12  # instead of 0, where a formula divides
ERF_TAIL_MIDDLE = 2.375
ERFC_CENTRE = 3

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Table:
    """One polynomial: `target(x) ~ sum(c[i] * x**i)` on `interval`, with the least `|weight * error|`.

    Weights make the error relative. The first `pinned` coefficients are rounded first, and the others fitted
    again to what that leaves.
    """

    name: str
    dtype: str
    comment: str
    target: Function
    interval: tuple[mpf, mpf]
    terms: int
    weight: Function
    pinned: int = 3
    doubled: int = 0


def round_to(dtype: str, value: mpf) -> mpf:
    """Round to the nearest value of a float format."""
    bits = {"f32": 24, "f64": 53}[dtype]
    with mpmath.workprec(bits):
        return +value


def solve(matrix: list[list[mpf]], right: list[mpf]) -> list[mpf]:
    return list(mpmath.lu_solve(mpmath.matrix(matrix), mpmath.matrix(right)))


def chebyshev_nodes(interval: tuple[mpf, mpf], count: int) -> list[mpf]:
    low, high = interval
    middle, radius = (low + high) / 2, (high - low) / 2
    angles = (mpmath.pi * (2 * i + 1) / (2 * count) for i in range(count))
    return sorted(middle + radius * mpmath.cos(angle) for angle in angles)


def fit(table: Table) -> list[mpf]:
    """Compute the coefficients, each rounded to the format, or the first ones to two parts of it."""
    if not table.pinned:
        return [round_to(table.dtype, c) for c in remez(table)]
    first = remez(table)[0]
    rounded = round_to(table.dtype, first)
    if table.doubled:
        rounded += round_to(table.dtype, first - rounded)
    rest = replace(
        table,
        target=lambda x: (table.target(x) - rounded) / x,
        weight=lambda x: table.weight(x) * x,
        terms=table.terms - 1,
        pinned=table.pinned - 1,
        doubled=max(table.doubled - 1, 0),
    )
    return [rounded, *fit(rest)]


def remez(table: Table) -> list[mpf]:
    """Fit by exchange on a fine grid. The weight may vanish or change its sign at 0, and only there."""
    terms = table.terms
    grid = [x for x in chebyshev_nodes(table.interval, SAMPLES_PER_TERM * (terms + 1)) if x]
    goals = [table.target(x) for x in grid]
    weights = [abs(table.weight(x)) for x in grid]
    basis = [[x**p for p in range(terms)] for x in grid]
    step = len(grid) / (terms + 1)
    chosen = [int(step * (i + 0.5)) for i in range(terms + 1)]
    for _ in range(EXCHANGES):
        rows = [basis[i] + [(-1) ** k / weights[i]] for k, i in enumerate(chosen)]
        *coefficients, level = solve(rows, [goals[i] for i in chosen])
        errors = [
            weight * (value - sum((c * b for c, b in zip(coefficients, row, strict=True)), mpf(0)))
            for weight, value, row in zip(weights, goals, basis, strict=True)
        ]
        if max(abs(e) for e in errors) <= abs(level) * (1 + TOLERANCE):
            return coefficients
        chosen = exchange(errors, len(chosen))
    raise ArithmeticError(f"{table.name}: no convergence in {EXCHANGES} exchanges")


def exchange(errors: Sequence[mpf], count: int) -> list[int]:
    """Choose the largest error of each run of one sign, and drop the least ones that keep the alternation."""
    runs = itertools.groupby(range(len(errors)), key=lambda i: errors[i] > 0)
    peaks = [max(run, key=lambda i: abs(errors[i])) for _, run in runs]
    if len(peaks) < count:
        raise ArithmeticError(f"the error alternates only {len(peaks)} times, {count} wanted")
    while len(peaks) > count:
        sizes = [abs(errors[i]) for i in peaks]
        least = sizes.index(min(sizes))
        if len(peaks) == count + 1 or least in (0, len(peaks) - 1):
            del peaks[0 if sizes[0] < sizes[-1] else -1]
        else:
            neighbour = least if sizes[least + 1] < sizes[least - 1] else least - 1
            del peaks[neighbour : neighbour + 2]
    return peaks


def evaluate(coefficients: Sequence[mpf], x: mpf) -> mpf:
    return mpmath.polyval(list(reversed(coefficients)), x)


def largest_error(table: Table, coefficients: Sequence[mpf]) -> mpf:
    """Measure the rounded polynomial at points that the fit did not use."""
    points = [x for x in chebyshev_nodes(table.interval, 2 * SAMPLES_PER_TERM * len(coefficients)) if x]
    return max(abs(table.weight(x) * (table.target(x) - evaluate(coefficients, x))) for x in points)


def literal(dtype: str, value: mpf) -> str:
    """The shortest decimal that reads back as this value of the format."""
    return str(np.float32(float(value))) if dtype == "f32" else repr(float(value))


def exponential_tables() -> Iterator[Table]:
    """exp(r) = 1 + r (1 + r P(r)) and 2**r = 1 + r P(r), on the reduced range."""
    bound = mpmath.log(2) / 2 * (1 + mpf(2) ** -12)
    for dtype, degree in (("f32", 6), ("f64", 11)):
        yield Table(
            f"EXP_{dtype.upper()}",
            dtype,
            "(exp(r) - 1 - r) / r**2 on |r| <= log(2)/2",
            lambda r: (mpmath.expm1(r) - r) / r**2,
            (-bound, bound),
            degree - 1,
            lambda r: r**2 / mpmath.exp(r),
        )
    for dtype, degree in (("f32", 6), ("f64", 12)):
        yield Table(
            f"EXP2_{dtype.upper()}",
            dtype,
            "(2**r - 1) / r on |r| <= 1/2",
            lambda r: mpmath.expm1(r * mpmath.log(2)) / r,
            (mpf(-0.5), mpf(0.5)),
            degree,
            lambda r: r / mpf(2) ** r,
        )


def power_tables() -> Iterator[Table]:
    yield Table(
        "POW_EXP2_F32",
        "f64",
        "(2**r - 1) / r on |r| <= 1/2",
        lambda r: mpmath.expm1(r * mpmath.log(2)) / r,
        (mpf(-0.5), mpf(0.5)),
        7,
        lambda r: r / mpf(2) ** r,
    )


def logarithm_tables() -> Iterator[Table]:
    """log(1 + f) = f + f**2 P(f), log2(1 + f) = f c + f**2 P(f), on sqrt(1/2) <= 1 + f <= sqrt(2)."""
    yield logarithm_table("LOG_F32", "f32", mpf(1), 10)
    yield logarithm_table("LOG_F64", "f64", mpf(1), 21)
    yield logarithm_table("LOG2_F32", "f32", log2_e(), 10)
    yield logarithm_table("LOG2_F64", "f64", log2_e(), 21)
    yield logarithm_table("LOG10_F32", "f32", log10_e(), 10)
    yield logarithm_table("LOG10_F64", "f64", log10_e(), 21)
    yield logarithm_table("POW_LOG2_F32", "f64", log2_e(), 13)
    yield Table(
        "POW_ATANH_F64",
        "f64",
        "(atanh(s) - s) / s**3 on |s| <= 3 - 2 sqrt(2), in s**2",
        lambda z: (mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        (TINY, (3 - 2 * mpmath.sqrt(2)) ** 2 * (1 + mpf(2) ** -12)),
        9,
        lambda z: z,
        doubled=2,
    )


def logarithm_table(name: str, dtype: str, slope: mpf, terms: int) -> Table:
    return Table(
        name,
        dtype,
        f"(log(1 + f) - f) / f**2 times {float(slope):.4g}, on sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: slope * (mpmath.log1p(f) - f) / f**2,
        (mpmath.sqrt(mpf(1) / 2) - 1, mpmath.sqrt(2) - 1),
        terms,
        lambda f: f**2 / (slope * mpmath.log1p(f)),
    )


def expm1_tables() -> Iterator[Table]:
    """exp(r) - 1 = r + r**2 P(r), and sinh(r), cosh(r) - 1 in powers of r**2, on |r| <= 0.55.

    More than log(2)/2, so that what a power of two less 1 leaves does not cancel.
    """
    top = mpf("0.55")
    for dtype, terms in (("f32", 7), ("f64", 12)):
        yield Table(
            f"EXPM1_{dtype.upper()}",
            dtype,
            "(exp(r) - 1 - r) / r**2 on |r| <= 0.55",
            lambda r: (mpmath.expm1(r) - r) / r**2,
            (-top, top),
            terms,
            lambda r: r**2 / mpmath.expm1(r),
        )
    for dtype, terms in (("f32", 3), ("f64", 6)):
        yield Table(
            f"SINH_{dtype.upper()}",
            dtype,
            "(sinh(r) - r) / r**3 on |r| <= 0.55, in r**2",
            lambda z: (mpmath.sinh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
            (TINY, top**2),
            terms,
            lambda z: z,
        )
        yield Table(
            f"COSH_{dtype.upper()}",
            dtype,
            "(cosh(r) - 1) / r**2 on |r| <= 0.55, in r**2",
            lambda z: (mpmath.cosh(mpmath.sqrt(z)) - 1) / z,
            (TINY, top**2),
            terms,
            lambda z: z,
        )


def trigonometric_tables() -> Iterator[Table]:
    """sin(r) = r + r**3 P(r**2), cos(r) = 1 - r**2/2 + r**4 P(r**2), on |r| <= pi/4, in powers of r**2.

    The f32 functions are computed in f64, to the precision of f32, and leave the 1/2 of cos to the
    polynomial.
    """
    top = (mpmath.pi / 4) ** 2 * (1 + mpf(2) ** -12)
    interval = (TINY, top)

    def sine(z: mpf) -> mpf:
        r = mpmath.sqrt(z)
        return (mpmath.sin(r) - r) / r**3

    def cosine(z: mpf) -> mpf:
        return (mpmath.cos(mpmath.sqrt(z)) - 1) / z

    def fourth_order(z: mpf) -> mpf:
        return (cosine(z) + mpf(1) / 2) / z

    def sine_weight(z: mpf) -> mpf:
        return z * mpmath.sqrt(z) / mpmath.sin(mpmath.sqrt(z))

    def cosine_weight(z: mpf) -> mpf:
        return z / mpmath.cos(mpmath.sqrt(z))

    note = "on r**2 <= (pi/4)**2, in r**2"
    yield Table("SIN_F32", "f64", f"(sin(r) - r) / r**3 {note}", sine, interval, 3, sine_weight)
    yield Table("COS_F32", "f64", f"(cos(r) - 1) / r**2 {note}", cosine, interval, 4, cosine_weight)
    yield Table("SIN_F64", "f64", f"(sin(r) - r) / r**3 {note}", sine, interval, 6, sine_weight)
    yield Table(
        "COS_F64",
        "f64",
        f"(cos(r) - 1 + r**2/2) / r**4 {note}",
        fourth_order,
        interval,
        6,
        lambda z: z * cosine_weight(z),
    )


def inverse_trigonometric_tables() -> Iterator[Table]:
    """atan(w) and asin(w) = w + w**3 P(w**2), |w| at most 1 and 1/2; those of f32 are computed in f64."""
    functions = (("ATAN", mpmath.atan, mpf(1), 10, 22), ("ASIN", mpmath.asin, mpf(1) / 4, 6, 13))
    for name, function, top, few, many in functions:
        for dtype, terms in (("F32", few), ("F64", many)):
            yield Table(
                f"{name}_{dtype}",
                "f64",
                f"({name.lower()}(w) - w) / w**3 on w**2 <= {float(top)}, in w**2",
                odd_part(function),
                (TINY, top),
                terms,
                lambda z: z,
            )


def odd_part(function: Function) -> Function:
    """For an odd function with slope 1 at 0: (f(w) - w) / w**3 as a function of w**2."""
    return lambda z: (function(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z


def root_tables() -> Iterator[Table]:
    yield Table(
        "CBRT",
        "f32",
        "1 / cbrt(m) on 1 <= m <= 2, the start of an iteration",
        lambda m: 1 / mpmath.cbrt(m),
        (mpf(1), mpf(2)),
        5,
        mpmath.cbrt,
        pinned=0,
    )


def error_function_tables() -> Iterator[Table]:
    """erf(x) = x + x P(x**2) near 0; 1 - P(x - c) in f32, to an absolute error, or 1 - erfc(x) in f64.

    erfc(x) = exp(-x**2) P(t) / (x + c), t = (x - c) / (x + c), which maps all positive x to a finite
    interval.
    """

    def head(z: mpf) -> mpf:
        return mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1

    def head_weight(z: mpf) -> mpf:
        return mpmath.sqrt(z) / mpmath.erf(mpmath.sqrt(z))

    for dtype, terms, top in (("f32", 7, mpf(1)), ("f64", 13, mpf(1))):
        yield Table(
            f"ERF_{dtype.upper()}",
            dtype,
            f"erf(x) / x - 1 on |x| <= {float(top)}, in x**2",
            head,
            (TINY, top**2),
            terms,
            head_weight,
            pinned=4,
        )
    middle = mpf(ERF_TAIL_MIDDLE)
    yield Table(
        "ERF_TAIL_F32",
        "f32",
        f"erfc(x) on 1 <= x <= 4, in x - {ERF_TAIL_MIDDLE}, to an absolute error",
        lambda u: mpmath.erfc(u + middle),
        (1 - middle, 4 - middle),
        16,
        lambda u: mpf(1),
        pinned=4,
    )
    for dtype, terms in (("f32", 12), ("f64", 22)):
        yield Table(
            f"ERFC_{dtype.upper()}",
            "f64",
            "(x + 3) exp(x**2) erfc(x) on 1/2 <= x <= 28, in (x - 3) / (x + 3)",
            scaled_erfc,
            (erfc_argument(mpf(0.5)), erfc_argument(mpf(28))),
            terms,
            lambda t: 1 / scaled_erfc(t),
            pinned=6,
            doubled=2,
        )


def erfc_argument(x: mpf) -> mpf:
    return (x - ERFC_CENTRE) / (x + ERFC_CENTRE)


def scaled_erfc(t: mpf) -> mpf:
    x = ERFC_CENTRE * (1 + t) / (1 - t)
    return (x + ERFC_CENTRE) * mpmath.exp(x**2) * mpmath.erfc(x)


def hyperbolic_tables() -> Iterator[Table]:
    """tanh(x) = x + x**3 P(x**2) near 0."""

    def head(z: mpf) -> mpf:
        x = mpmath.sqrt(z)
        return (mpmath.tanh(x) - x) / x**3

    def head_weight(z: mpf) -> mpf:
        x = mpmath.sqrt(z)
        return x**3 / mpmath.tanh(x)

    for dtype, terms, top in (("f32", 8, mpf(1)), ("f64", 12, mpf("0.625"))):
        yield Table(
            f"TANH_{dtype.upper()}",
            dtype,
            f"(tanh(x) - x) / x**3 on |x| <= {float(top)}, in x**2",
            head,
            (TINY, top**2),
            terms,
            head_weight,
            pinned=4,
        )


def tables() -> Iterator[Table]:
    yield from exponential_tables()
    yield from logarithm_tables()
    yield from power_tables()
    yield from trigonometric_tables()
    yield from expm1_tables()
    yield from hyperbolic_tables()
    yield from inverse_trigonometric_tables()
    yield from root_tables()
    yield from error_function_tables()


@dataclass(frozen=True)
class Split:
    """A constant as a sum of floats: each part but the last keeps `bits` bits, the last is rounded."""

    name: str
    dtype: str
    comment: str
    value: Callable[[], mpf]
    bits: int
    parts: int = 2

    def split(self) -> list[mpf]:
        rest, result = self.value(), []
        for _ in range(self.parts - 1):
            with mpmath.workprec(self.bits):
                result.append(+rest)
            rest -= result[-1]
        return [*result, round_to(self.dtype, rest)]


def ln2() -> mpf:
    return mpmath.log(2)


def log2_e() -> mpf:
    return 1 / mpmath.log(2)


def log10_e() -> mpf:
    return 1 / mpmath.log(10)


def log10_2() -> mpf:
    return mpmath.log10(2)


def half_pi() -> mpf:
    return mpmath.pi / 2


def two_over_pi() -> mpf:
    return 2 / mpmath.pi


SPLITS = (
    Split("LN2_F32", "f32", "log(2), the products of the high part with |n| <= 2**9 exact", ln2, 15),
    Split("LN2_F64", "f64", "log(2), the products of the high part with |n| <= 2**12 exact", ln2, 41),
    Split("LOG2_E_F32", "f32", "1/log(2)", log2_e, 24),
    Split("LOG2_E_F64", "f64", "1/log(2)", log2_e, 53),
    Split("LOG10_E_F32", "f32", "1/log(10)", log10_e, 24),
    Split("LOG10_E_F64", "f64", "1/log(10)", log10_e, 53),
    Split(
        "LOG10_2_F32", "f32", "log10(2), the products of the high part with |k| <= 2**9 exact", log10_2, 15
    ),
    Split(
        "LOG10_2_F64", "f64", "log10(2), the products of the high part with |k| <= 2**12 exact", log10_2, 41
    ),
    Split("TWO_LOG2_E", "f64", "2/log(2)", lambda: 2 * log2_e(), 53),
    Split("HALF_PI", "f64", "pi/2", half_pi, 53, 3),
    Split("TWO_OVER_PI", "f64", "2/pi", two_over_pi, 53, 1),
)


def two_over_pi_words(skipped: int, words: int) -> list[int]:
    """Return 64-bit words of the binary expansion of 2/pi, `skipped` bits behind the point left out.

    A negative number of skipped bits puts that many zeros before.
    """
    with mpmath.workprec(64 * words + skipped + 64):
        scaled = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, 64 * words + skipped)))
    return [scaled >> 64 * (words - 1 - i) & (1 << 64) - 1 for i in range(words)]


def two_over_pi_band(exponent: int) -> tuple[float, ...]:
    """Return the bits of 2/pi that matter for an f32 from 2**exponent on: 29, 29, and 53 bits.

    Bits of weight 2**(25 - exponent) and more give multiples of 4 with such numbers.
    """
    position, parts = 25 - exponent, []
    for width in (29, 29, 53):
        position -= width
        with mpmath.workprec(400):
            digits = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, -position))) % (1 << width)
        parts.append(float(mpmath.ldexp(digits, position)))
    return tuple(parts)


FIRST_BAND, BAND_WIDTH = 32, 24
BANDS = tuple(range(FIRST_BAND, 128, BAND_WIDTH))

WORDS = (("TWO_OVER_PI_WORDS_F64", "24 zeros, then the bits of 2/pi behind the point", -24, 19),)


def render() -> str:
    lines = [
        '"""Constants and polynomials, lowest power first. Made by tools/minimax.py: do not edit."""',
        "",
        "from __future__ import annotations",
    ]
    for constant in SPLITS:
        lines += ["", f"# {constant.comment}", *render_tuple(constant.name, constant.dtype, constant.split())]
    for name, comment, skipped, count in WORDS:
        words = [f"    0x{word:016X}," for word in two_over_pi_words(skipped, count)]
        lines += ["", f"# {comment}", f"{name} = (", *words, ")"]
    lines += [
        "",
        "# for each exponent of an f32 from which on it holds: the bits of 2/pi that matter, in parts",
    ]
    lines += ["TWO_OVER_PI_BANDS = ("]
    lines += [f"    ({exponent}, {two_over_pi_band(exponent)})," for exponent in BANDS]
    lines += [")"]
    for table in tables():
        coefficients = fit(table)
        error = largest_error(table, coefficients)
        lines += ["", f"# {table.comment}", f"# weighted error 2**{float(mpmath.log(error, 2)):.2f}"]
        rounded = [round_to(table.dtype, c) for c in coefficients]
        lines += render_tuple(table.name, table.dtype, rounded)
        if table.doubled:
            rests = [c - r for c, r in zip(coefficients, rounded, strict=True)][: table.doubled]
            lines += ["", "# what the first coefficients lose"]
            lines += render_tuple(f"{table.name}_REST", table.dtype, rests)
    return "\n".join(lines) + "\n"


def render_tuple(name: str, dtype: str, values: Sequence[mpf]) -> list[str]:
    literals = [literal(dtype, v) for v in values]
    if len(literals) == 1:
        return [f"{name} = ({literals[0]},)"]
    return [f"{name} = (", *(f"    {text}," for text in literals), ")"]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="compute the polynomial coefficients of blocklang's maths")
    parser.add_argument("--write", action="store_true", help=f"replace {OUTPUT.name}")
    options = parser.parse_args(arguments)
    mpmath.mp.prec = 250
    text = render()
    if options.write:
        OUTPUT.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])

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
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
from mpmath import mpf

OUTPUT = Path(__file__).resolve().parent.parent / "blocklang" / "maths" / "coefficients.py"
SAMPLES_PER_TERM = 24
EXCHANGES = 60

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Table:
    """One polynomial: `target(x) ~ sum(c[i] * x**powers[i])` on `interval`, least `|weight * error|`."""

    name: str
    dtype: str
    comment: str
    target: Function
    interval: tuple[mpf, mpf]
    powers: tuple[int, ...]
    weight: Function


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


def remez(table: Table) -> list[mpf]:
    """Fit the coefficients by exchange on a fine grid. A weight may vanish, or change its sign, at 0 only."""
    powers = table.powers
    grid = [x for x in chebyshev_nodes(table.interval, SAMPLES_PER_TERM * (len(powers) + 1)) if x]
    goals = [table.target(x) for x in grid]
    weights = [abs(table.weight(x)) for x in grid]
    basis = [[x**p for p in powers] for x in grid]
    step = len(grid) / (len(powers) + 1)
    chosen = [int(step * (i + 0.5)) for i in range(len(powers) + 1)]
    for _ in range(EXCHANGES):
        rows = [basis[i] + [(-1) ** k / weights[i]] for k, i in enumerate(chosen)]
        *coefficients, level = solve(rows, [goals[i] for i in chosen])
        errors = [
            weight * (value - sum((c * b for c, b in zip(coefficients, row, strict=True)), mpf(0)))
            for weight, value, row in zip(weights, goals, basis, strict=True)
        ]
        if max(abs(e) for e in errors) <= abs(level) * (1 + mpf(10) ** -4):
            return coefficients
        chosen = exchange(errors, len(chosen))
    raise ArithmeticError(f"{table.name}: no convergence in {EXCHANGES} exchanges")


def exchange(errors: Sequence[mpf], count: int) -> list[int]:
    """Choose the largest error of each run of one sign; drop the least at the ends down to `count`."""
    runs = itertools.groupby(range(len(errors)), key=lambda i: errors[i] > 0)
    peaks = [max(run, key=lambda i: abs(errors[i])) for _, run in runs]
    if len(peaks) < count:
        raise ArithmeticError(f"the error alternates only {len(peaks)} times, {count} wanted")
    while len(peaks) > count:
        del peaks[0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1]
    return peaks


def largest_error(table: Table, coefficients: Sequence[mpf]) -> mpf:
    """Measure the rounded polynomial at points that the fit did not use."""

    def error(x: mpf) -> mpf:
        value = sum((c * x**p for p, c in zip(table.powers, coefficients, strict=True)), mpf(0))
        return abs(table.weight(x) * (table.target(x) - value))

    return max(error(x) for x in chebyshev_nodes(table.interval, 2 * SAMPLES_PER_TERM * len(coefficients)))


def literal(dtype: str, value: mpf) -> str:
    """The shortest decimal that reads back as this value of the format."""
    return str(np.float32(float(value))) if dtype == "f32" else repr(float(value))


def exponential_tables() -> Iterator[Table]:
    """exp(r) = 1 + r + r**2 P(r), 2**r = 1 + r P(r), on the reduced range; weights make the error
    relative."""
    bound = mpmath.log(2) / 2 * (1 + mpf(2) ** -12)
    for dtype, degree in (("f32", 6), ("f64", 11)):
        yield Table(
            f"EXP_{dtype.upper()}",
            dtype,
            "(exp(r) - 1 - r) / r**2 on |r| <= log(2)/2",
            lambda r: (mpmath.expm1(r) - r) / r**2 if r else mpf(1) / 2,
            (-bound, bound),
            tuple(range(degree - 1)),
            lambda r: r**2 / mpmath.exp(r),
        )
    for dtype, degree in (("f32", 6), ("f64", 12)):
        yield Table(
            f"EXP2_{dtype.upper()}",
            dtype,
            "(2**r - 1) / r on |r| <= 1/2",
            lambda r: mpmath.expm1(r * mpmath.log(2)) / r if r else mpmath.log(2),
            (mpf(-0.5), mpf(0.5)),
            tuple(range(degree)),
            lambda r: r / mpf(2) ** r,
        )


def logarithm_tables() -> Iterator[Table]:
    """log(1 + f) = f - f**2/2 + f**3 P(f), on sqrt(1/2) <= 1 + f <= sqrt(2)."""
    low, high = mpmath.sqrt(mpf(1) / 2) - 1, mpmath.sqrt(2) - 1

    def target(f: mpf) -> mpf:
        if abs(f) < mpf(10) ** -12:
            return mpf(1) / 3 - f / 4
        return (mpmath.log1p(f) - f + f**2 / 2) / f**3

    def weight(f: mpf) -> mpf:
        return f**3 / mpmath.log1p(f) if f else mpf(0)

    for dtype, terms in (("f32", 9), ("f64", 20)):
        yield Table(
            f"LOG_{dtype.upper()}",
            dtype,
            "(log(1 + f) - f + f**2/2) / f**3 on sqrt(1/2) <= 1 + f <= sqrt(2)",
            target,
            (low, high),
            tuple(range(terms)),
            weight,
        )


def tables() -> Iterator[Table]:
    yield from exponential_tables()
    yield from logarithm_tables()


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


SPLITS = (
    Split("LN2_F32", "f32", "log(2), the products of the high part with |n| <= 2**9 exact", ln2, 15),
    Split("LN2_F64", "f64", "log(2), the products of the high part with |n| <= 2**12 exact", ln2, 41),
    Split("LOG2_E_F32", "f32", "1/log(2)", log2_e, 24),
    Split("LOG2_E_F64", "f64", "1/log(2)", log2_e, 53),
)


def render() -> str:
    lines = [
        '"""Constants and polynomials, lowest power first. Made by tools/minimax.py: do not edit."""',
        "",
        "from __future__ import annotations",
    ]
    for constant in SPLITS:
        lines += ["", f"# {constant.comment}", *render_tuple(constant.name, constant.dtype, constant.split())]
    for table in tables():
        coefficients = [round_to(table.dtype, c) for c in remez(table)]
        error = largest_error(table, coefficients)
        lines += ["", f"# {table.comment}", f"# weighted error 2**{float(mpmath.log(error, 2)):.2f}"]
        lines += render_tuple(table.name, table.dtype, coefficients)
    return "\n".join(lines) + "\n"


def render_tuple(name: str, dtype: str, values: Sequence[mpf]) -> list[str]:
    return [f"{name} = (", *(f"    {literal(dtype, v)}," for v in values), ")"]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="compute the polynomial coefficients of blocklang's maths")
    parser.add_argument("--write", action="store_true", help=f"replace {OUTPUT.name}")
    options = parser.parse_args(arguments)
    mpmath.mp.prec = 200
    text = render()
    if options.write:
        OUTPUT.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Compute the polynomials of gamma, inverse error and Bessel functions, and write them to
`blocklang/maths/special_coefficients.py`, as `minimax.py` does for the others.

    python -m tools.special_functions            print the generated module
    python -m tools.special_functions --write    replace blocklang/maths/special_coefficients.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import mpmath
from mpmath import mpf

from tools.minimax import Function, Split, Table, fit, largest_error, render_tuple, round_to

OUTPUT = Path(__file__).resolve().parent.parent / "blocklang" / "maths" / "special_coefficients.py"
NEAR_ZERO = mpf(10) ** -10
# Where amplitude and phase take over from polynomials.
FAR = 8


def reciprocal(function: Function) -> Function:
    """The weight that makes errors relative."""
    return lambda x: 1 / function(x)


def inverse_error_tables() -> Iterator[Table]:
    """First approximations, which one step of Halley's iteration improves to all digits."""

    def head(z: mpf) -> mpf:
        a = mpmath.sqrt(z)
        return mpmath.erfinv(a) / a

    yield Table(
        "ERFINV_HEAD",
        "f64",
        "erfinv(a) / a on a <= 1/2, in a**2",
        head,
        (NEAR_ZERO, mpf(0.25)),
        7,
        lambda z: 1 / head(z),
        pinned=0,
    )

    def tail(v: mpf) -> mpf:
        return inverse_erfc(mpmath.exp(-1 / v**2)) * v

    yield Table(
        "ERFCINV_TAIL",
        "f64",
        "erfcinv(q) / s, s = sqrt(-log(q)), on 2**-1074 <= q <= 1/2, in 1 / s",
        tail,
        (mpf("0.0366"), mpf("1.2012")),
        16,
        lambda v: 1 / tail(v),
        pinned=0,
    )


def inverse_erfc(q: mpf) -> mpf:
    y = mpmath.sqrt(-mpmath.log(q))
    for _ in range(60):
        value = mpmath.erfc(y)
        change = mpmath.log(value / q) * value * mpmath.sqrt(mpmath.pi) / (2 * mpmath.exp(-(y**2)))
        y = max(y + change, y / 4)
        if abs(change) < mpf(2) ** -120 * y:
            break
    return y


def gamma_tables() -> Iterator[Table]:
    half = mpf(0.5)

    def log_gamma(u: mpf) -> mpf:
        if abs(u) < mpf(10) ** -30:
            return 1 - mpmath.euler
        return mpmath.loggamma(2 + u) / (u * (u + 1))

    yield Table(
        "LGAMMA",
        "f64",
        "lgamma(2 + u) / (u (u + 1)) on -3/4 <= u <= 1/2",
        log_gamma,
        (mpf(-0.75), half),
        25,
        lambda u: 1 / log_gamma(u),
    )
    yield Table(
        "GAMMA",
        "f64",
        "gamma(2 + u) on -3/4 <= u <= 1/2",
        lambda u: mpmath.gamma(2 + u),
        (mpf(-0.75), half),
        25,
        lambda u: 1 / mpmath.gamma(2 + u),
    )

    def stirling(z: mpf) -> mpf:
        x = 1 / mpmath.sqrt(z)
        main = (x - half) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2
        return (mpmath.loggamma(x) - main) * x

    yield Table(
        "STIRLING",
        "f64",
        "x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) on x >= 8, in x**-2",
        stirling,
        (NEAR_ZERO, mpf(1) / 64),
        8,
        lambda z: 1 / stirling(z),
        pinned=1,
    )


def zero_of(function: str, index: int) -> mpf:
    kind, order = function[0], int(function[1])
    zeros = mpmath.besseljzero if kind == "j" else mpmath.besselyzero
    return zeros(order, index)


def bessel_tables() -> Iterator[Table]:
    """Each with its zeros divided out, in a variable that runs from -1 to 1 (`MAPS` in bessel.py)."""
    for name, order, index, (low, high), (factor, shift), terms in (
        ("J0_LOW", 0, 1, (0, 16), (0.125, -1.0), 14),
        ("J0_HIGH", 0, 2, (16, 64), (0.03125, -1.25), 16),
        ("J1_LOW", 1, 1, (0, 30.25), (0.0625, -1.0), 15),
        ("J1_HIGH", 1, 2, (30.25, 64), (0.0625, -3.0), 14),
    ):
        zero = zero_of(f"j{order}", index) ** 2

        def target(
            w: mpf, order: int = order, zero: mpf = zero, factor: float = factor, shift: float = shift
        ) -> mpf:
            t = (w - shift) / factor
            x = mpmath.sqrt(t)
            value = mpmath.besselj(order, x) / (x if order else 1) if t > 0 else mpf(1) / (order + 1)
            return value / (t - zero)

        yield Table(
            name,
            "f64",
            f"J{order}(x) / (x**2 - zero**2){' / x' if order else ''} on {low} <= x**2 <= {high}",
            target,
            (factor * mpf(low) + shift, factor * mpf(high) + shift),
            terms,
            reciprocal(target),
            pinned=4,
        )
    for name, order, index, high, terms in (
        ("Y0_LOW", 0, 1, 9, 12),
        ("Y1_LOW", 1, 1, 16, 14),
    ):
        zero = zero_of(f"y{order}", index)

        def low_target(t: mpf, order: int = order, zero: mpf = zero) -> mpf:
            x = mpmath.sqrt(t)
            smooth = mpmath.bessely(order, x) - 2 / mpmath.pi * mpmath.log(x / zero) * mpmath.besselj(
                order, x
            )
            return smooth * (x if order else 1) / (t - zero**2)

        yield Table(
            name,
            "f64",
            f"(Y{order}(x) - 2/pi log(x / zero) J{order}(x)){' x' if order else ''} / (x**2 - zero**2) "
            f"on x**2 <= {high}",
            low_target,
            (NEAR_ZERO, mpf(high)),
            terms,
            reciprocal(low_target),
            pinned=4,
        )
    for name, order, index, (low, high), centre, terms in (
        ("Y0_MIDDLE", 0, 2, (3, 5.5), 4.25, 20),
        ("Y0_HIGH", 0, 3, (5.5, 8), 6.75, 20),
        ("Y1_HIGH", 1, 2, (4, 8), 6.0, 22),
    ):
        zero = zero_of(f"y{order}", index)

        def high_target(u: mpf, order: int = order, zero: mpf = zero, centre: float = centre) -> mpf:
            x = u + centre
            return mpmath.bessely(order, x) / (x - zero)

        yield Table(
            name,
            "f64",
            f"Y{order}(x) / (x - zero) on {low} <= x <= {high}, in x - {centre}",
            high_target,
            (mpf(low) - centre, mpf(high) - centre),
            terms,
            reciprocal(high_target),
            pinned=4,
        )
    yield from far_tables()


def far_tables() -> Iterator[Table]:
    """J = sqrt(2 / (pi x)) A cos(x - c + B / x), Y the same with sin, from x = 8 on, in x**-2."""
    for order in (0, 1):

        def amplitude(z: mpf, order: int = order) -> mpf:
            x = 1 / mpmath.sqrt(z)
            square = mpmath.besselj(order, x) ** 2 + mpmath.bessely(order, x) ** 2
            return mpmath.sqrt(square * mpmath.pi * x / 2)

        def phase(z: mpf, order: int = order) -> mpf:
            x = 1 / mpmath.sqrt(z)
            turned = x - (2 * order + 1) * mpmath.pi / 4
            whole = mpmath.mpc(mpmath.besselj(order, x), mpmath.bessely(order, x))
            return mpmath.arg(whole * mpmath.expj(-turned)) * x

        interval = (mpf(10) ** -6, mpf(1) / FAR**2)
        yield Table(
            f"AMPLITUDE{order}",
            "f64",
            f"sqrt(pi x / 2) sqrt(J{order}(x)**2 + Y{order}(x)**2) on x >= {FAR}, in x**-2",
            amplitude,
            interval,
            13,
            reciprocal(amplitude),
            pinned=1,
        )
        yield Table(
            f"PHASE{order}",
            "f64",
            f"x (arg(J{order}(x) + i Y{order}(x)) - x + {2 * order + 1} pi / 4) on x >= {FAR}, in x**-2",
            phase,
            interval,
            15,
            reciprocal(phase),
            pinned=1,
        )


def modified_bessel_tables() -> Iterator[Table]:
    for order in (0, 1):

        def low(t: mpf, order: int = order) -> mpf:
            x = mpmath.sqrt(t)
            return mpmath.besseli(order, x) / (x if order else 1)

        def high(v: mpf, order: int = order) -> mpf:
            x = 1 / v
            return mpmath.besseli(order, x) * mpmath.exp(-x) * mpmath.sqrt(x)

        yield Table(
            f"I{order}_LOW",
            "f64",
            f"I{order}(x){' / x' if order else ''} on x <= 8, in x**2",
            low,
            (NEAR_ZERO, mpf(64)),
            19,
            reciprocal(low),
            pinned=3,
        )
        yield Table(
            f"I{order}_HIGH",
            "f64",
            f"sqrt(x) exp(-x) I{order}(x) on x >= 8, in 1 / x",
            high,
            (mpf(10) ** -3, mpf(1) / 8),
            24,
            reciprocal(high),
            pinned=4,
        )


def tables() -> Iterator[Table]:
    yield from inverse_error_tables()
    yield from gamma_tables()
    yield from bessel_tables()
    yield from modified_bessel_tables()


SPLITS = (
    *(
        Split(
            f"{name.upper()}_ZERO{index}",
            "f64",
            f"zero {index} of {name.upper()}",
            partial(zero_of, name, index),
            53,
        )
        for name, indices in (("j0", (1, 2)), ("j1", (1, 2)), ("y0", (1, 2, 3)), ("y1", (1, 2)))
        for index in indices
    ),
    Split("PI", "f64", "pi", lambda: mpmath.pi, 53, 2),
    Split("LOG10", "f64", "log(10)", lambda: mpmath.log(10), 53, 2),
    Split("HALF_LOG_TWO_PI", "f64", "log(2 pi) / 2", lambda: mpmath.log(2 * mpmath.pi) / 2, 53, 1),
    Split("TWO_OVER_PI", "f64", "2/pi", lambda: 2 / mpmath.pi, 53, 2),
)


def render() -> str:
    lines = [
        '"""Constants and polynomials, lowest power first. '
        'Made by tools/special_functions.py: do not edit."""',
        "",
        "from __future__ import annotations",
    ]
    for constant in SPLITS:
        lines += ["", f"# {constant.comment}", *render_tuple(constant.name, constant.dtype, constant.split())]
    for table in tables():
        print(table.name, file=sys.stderr, end=" ", flush=True)
        coefficients = fit(table)
        error = largest_error(table, coefficients)
        print(float(mpmath.log(error, 2)), file=sys.stderr, flush=True)
        lines += ["", f"# {table.comment}", f"# weighted error 2**{float(mpmath.log(error, 2)):.2f}"]
        lines += render_tuple(table.name, table.dtype, [round_to(table.dtype, c) for c in coefficients])
    return ("\n".join(lines) + "\n").replace("e+", "e")  # as the formatter writes exponents


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="compute the polynomials of blocklang's special functions")
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

"""Print the reference of maths functions, `docs/maths.md`: `python -m blocklang.maths`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from blocklang.maths.registry import ALL, MONOTONE_F32, RECIPES

INTRODUCTION = """\
# Maths functions

Generated from `blocklang/maths/registry.py` by `python -m blocklang.maths` (`make docs` writes it).

Each function is one recipe over elementary steps with one possible result each (correctly rounded arithmetic,
comparisons, integer operations), so the interpreter, every vector width and every target give the same bits.
The numbers below are the largest errors over the whole range of arguments, huge, tiny and subnormal ones
included, in units in the last place of the exact result; 0.5 is a correctly rounded result. For f32 functions
of one argument all 2**32 arguments were tried (`python -m tests.maths.exhaustive`), or they compute in f64
and round once, from `rcbrt` on; the others were measured on dense samples.

The error of `lgamma` is that of positive arguments; the zeros between negative integers have an absolute one,
of a few units of the two terms that cancel. The errors of `j0`, `j1`, `y0` and `y1` hold up to 8; beyond,
they are in units in the last place of the amplitude sqrt(2 / (pi x)). What a direction rounds (`add_rd`) is
exact: the neighbour on that side.

Infinities, NaN and signed zeros follow C's Annex F. No recipe branches or traps."""

MONOTONE = """\
In f32, the results of these never fall where the function rises, tried over all arguments: {names}.
The others may step back by one unit in the last place."""


def render() -> str:
    """The whole page."""
    return "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    yield INTRODUCTION
    yield ""
    yield "| function | arguments | f32, ULP | f64, ULP |"
    yield "| --- | --- | --- | --- |"
    for name in dict.fromkeys(recipe.name for recipe in ALL):
        single, double = RECIPES[name, "f32"], RECIPES[name, "f64"]
        yield f"| {name} | {single.arity} | {single.max_ulp:.3g} | {double.max_ulp:.3g} |"
    yield ""
    yield MONOTONE.format(names=", ".join(MONOTONE_F32))


if __name__ == "__main__":
    sys.stdout.write(render())

"""A report as text: per line of the kernel what runs for it, then what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from blocklang.explain.report import Access, Kept, Line, Loop, Product, Report

_MEANINGS = {
    "consecutive": "consecutive elements: one vector of {lanes} lanes",
    "broadcast": "one element for all {lanes} lanes",
    "backwards": "consecutive elements backwards: one vector of {lanes} lanes, turned in registers",
    "every second": "every second element: two vectors of {lanes} lanes and a shuffle",
    "repeated": "repeated elements: loaded once and spread over {lanes} lanes",
    "strided": "elements one by one, at one distance, for {lanes} lanes",
    "gather": "gather: {lanes} lanes, element by element",
    "scatter": "scatter: {lanes} lanes, element by element",
    "one lane a step": "one lane a step",
    "scalar": "one element",
}


Numbers = dict[tuple[str, ...], int]
"""The conditions of each guard, and the number that stands for them."""


def format_report(report: Report) -> str:
    """The text of a report, for people."""
    return "\n".join(_report(report)) + "\n"


def _report(report: Report) -> Iterator[str]:
    guards = [g.conditions for line in report.lines for access in line.accesses for g in access.guards]
    numbers = {conditions: number for number, conditions in enumerate(dict.fromkeys(guards), 1)}
    yield f"{report.kernel} ({PurePath(report.file).name}) on {report.target}; arrays: {report.alias}"
    for line in report.lines:
        yield ""
        yield from _line(line, numbers)
    for conditions, number in numbers.items():
        yield ""
        yield f"guard {number}, tested before the loop"
        yield from (f"  {condition}" for condition in conditions)
    if report.kept:
        yield ""
        yield "kept in memory"
        yield from (f"  {_kept(each)}" for each in report.kept)
        yield f"  {report.scratch_bytes:,} bytes of memory per worker in all"


def _line(line: Line, numbers: Numbers) -> Iterator[str]:
    yield f"{line.number}: {line.text}"
    for product in line.products:
        yield from _product(product)
    for access in line.accesses:
        yield from _access(access, numbers)
    for loop in line.loops:
        yield f"  {_loop(loop)}"


def _access(access: Access, numbers: Numbers) -> Iterator[str]:
    meaning = _MEANINGS[access.form].format(lanes=access.lanes)
    times = f", in {access.loops} loops" if access.loops > 1 else ""
    yield f"  {access.operation} {access.array} ({access.element}): {meaning}{times}"
    if access.why:
        yield f"    why not better: {access.why}"
    if access.mask:
        yield f"    mask: {access.mask}"
    for guard in access.guards:
        yield f"    needs guard {numbers[guard.conditions]}; else: {guard.otherwise}"


def _loop(loop: Loop) -> str:
    *outer, lanes = loop.axes
    around = f"for {', '.join(outer)}: " if outer else ""
    folds = f", folding {', '.join(loop.folds)}" if loop.folds else ""
    return f"loop: {around}{loop.lanes} lanes a step along {lanes}, {loop.extent}{folds}"


def _product(product: Product) -> Iterator[str]:
    rows, columns, depth = product.shape
    tile = f"{product.tile[0]} x {product.tile[1]}"
    form = f", multiplied in {product.form}" if product.form != "fma" else ""
    yield f"  product {rows} x {columns} x {depth}: {tile} of the result in registers{form}"
    yield from (f"    {packed}" for packed in product.packed)


def _kept(kept: Kept) -> str:
    line = f" (line {kept.line})" if kept.line else ""
    return f"{kept.name}{line}: {kept.type}, {kept.bytes:,} bytes; {kept.why}"

"""The source of a launch, line by line: what was waited for, and which bytes moved."""

from __future__ import annotations

import ast
import io
import keyword
import linecache
import os
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blocklang.emulation.page.markup import Place, bar, duration, escape, json_number, percent
from blocklang.target import format_size

AROUND = 3  # lines that are shown before and behind one that stands in no function


def format_source(report: Mapping[str, Any], kernel: Place, colours: Mapping[Place, str]) -> str:
    """The functions that a launch ran.

    Args:
        report: of the launch, as in the JSON.
        kernel: where it is defined.
        colours: the classes of lines.
    """
    lines = {(line["file"], line["line"]): line for line in report["lines"]}
    files: dict[str, set[int]] = defaultdict(set)
    for file, number in (kernel, *lines):
        files[file].add(number)
    longest = max((json_number(line.get("time_us")) for line in lines.values()), default=0.0)
    total = json_number(report.get("time_us"))
    parts = []
    for file, wanted in files.items():
        text = linecache.getlines(file)
        if not text:
            parts.append(f'<p class="none">{escape(file)} cannot be read.</p>')
            continue
        marked = _highlighted("".join(text))
        rows = []
        for first, last in _extents(text, wanted):
            for number in range(first, last + 1):
                place = (file, number)
                rows.append(
                    _row(number, marked[number - 1], lines.get(place), total, longest, colours.get(place))
                )
            rows.append('<tr class="gap"><td colspan="7"></td></tr>')
        parts.append(_file(file, rows[:-1], bool(total)))
    return "\n".join(parts)


def _file(file: str, rows: Sequence[str], is_timed: bool) -> str:
    times = "<th>time</th><th></th><th>waits for</th>" if is_timed else "<th></th><th></th><th></th>"
    head = f'{times}<th class="num">read</th><th class="num">written</th><th></th>'
    name = escape(os.path.basename(file))
    return (
        f'<div class="scroll"><table class="source"><thead><tr>{head}<th title="{escape(file)}">{name}</th>'
        f"</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _row(
    number: int,
    text: str,
    line: Mapping[str, Any] | None,
    total: float,
    longest: float,
    colour: str | None,
) -> str:
    time = json_number(line.get("time_us")) if line is not None else 0.0
    waited = cause = read = written = ""
    if line is not None:
        moved = line["memory"].get("global", {})
        read, written = (_bytes(moved.get(key)) for key in ("bytes_read", "bytes_written"))
    if line is not None and time and total:
        waited = f"{bar(time / total, colour or '')} {percent(time / total)}"
        cause = escape(line.get("cause") or "")
    is_hottest = bool(time) and time == longest
    mark = '<span class="hottest">hottest</span>' if is_hottest else ""
    swatch = f'<i class="{colour}"></i>' if colour else ""
    kind = " ".join(word for word, holds in (("hot", is_hottest), ("touched", line is not None)) if holds)
    row = f'<tr class="{kind}"' + (f' data-colour="{colour}"' if colour else "") + ">"
    return (
        f'{row}<td class="num">{duration(time * 1e-6) if time else ""}</td><td class="share">{waited}</td>'
        f'<td>{cause}</td><td class="num">{read}</td><td class="num">{written}</td>'
        f'<td class="number">{swatch}{number}</td><td class="code"><code>{text}</code>{mark}</td></tr>'
    )


def _bytes(amount: Any) -> str:
    return format_size(amount) if amount else ""


def _extents(text: Sequence[str], wanted: set[int]) -> list[tuple[int, int]]:
    """First and last lines of the functions in which the wanted lines stand."""
    functions = sorted(_functions("".join(text)), key=lambda extent: extent[1] - extent[0])
    found = set()
    for number in wanted:
        around = (max(1, number - AROUND), min(len(text), number + AROUND))
        found.add(next((f for f in functions if f[0] <= number <= f[1]), around))
    return _joined(sorted(found))


def _functions(source: str) -> Iterator[tuple[int, int]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno


def _joined(extents: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same lines without overlaps."""
    found: list[tuple[int, int]] = []
    for first, last in extents:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


# ---- colours of Python ----


def _highlighted(source: str) -> list[str]:
    """Every line as HTML, with comments, strings, keywords and numbers marked; plain where Python cannot read
    the file."""
    lines = source.splitlines(keepends=True)
    spans: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if kind := _kind(token):
                for number in range(token.start[0], token.end[0] + 1):
                    first = token.start[1] if number == token.start[0] else 0
                    last = token.end[1] if number == token.end[0] else len(lines[number - 1])
                    spans[number].append((first, last, kind))
    except (tokenize.TokenError, SyntaxError, IndexError):
        spans.clear()
    return [_marked(line, spans[number]) for number, line in enumerate(lines, start=1)]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and (keyword.iskeyword(token.string)):
        return "k"
    kinds = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "n"}
    return kinds.get(token.type, "")


def _marked(line: str, spans: Sequence[tuple[int, int, str]]) -> str:
    line = line.rstrip("\r\n")
    parts, done = [], 0
    for first, last, kind in spans:
        parts.append(escape(line[done:first]))
        parts.append(f'<b class="{kind}">{escape(line[first:last])}</b>')
        done = last
    return "".join([*parts, escape(line[done:])])

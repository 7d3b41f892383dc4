"""Colours for IR, LLVM IR, assembly and reports on a terminal.

Not a parser: one regular expression a language, whose group names are styles. Whatever no group matches stays
plain, and removing the colours gives back the text.
"""

from __future__ import annotations

import re
from typing import Any

import click

STYLES: dict[str, dict[str, Any]] = {
    "comment": {"dim": True},
    "string": {"fg": "green"},
    "symbol": {"fg": "blue", "bold": True},
    "value": {"fg": "cyan"},
    "type": {"fg": "yellow"},
    "attribute": {"dim": True},
    "number": {"fg": "magenta"},
    "operation": {"bold": True},
}

_IR = r"""
    (?P<comment>//.*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<symbol>@[\w.$]+)
  | (?P<value>%[\w.$]+)
  | (?P<type>\b(?:(?:block|buffer|ptr)<(?:[^<>]|<[^<>]*>)*>
             |map<[^<>]*>|(?:[iu](?:8|16|32|64)|i1|b?f(?:16|32|64))\b))
  | (?P<attribute>\b\w+(?==))
  | (?P<number>(?<![\w%])-?(?:inf\b|nan\b|true\b|false\b|\d[\d.]*(?:e[-+]?\d+)?))
  | (?P<operation>\b[a-z_]\w*)
"""

_LLVM = r"""
    (?P<comment>;.*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<symbol>@[\w.$"-]+)
  | (?P<value>%[\w.$-]+)
  | (?P<type><[^<>\n]*>|\b(?:i\d+|half|bfloat|float|double|ptr|void)\b)
  | (?P<attribute>[#!][\w.]+|^[\w.$-]+:)
  | (?P<number>(?<![\w%])-?(?:0x[0-9A-Fa-f]+|\d[\d.]*(?:e[-+]?\d+)?))
  | (?P<operation>\b[a-z_]\w*)
"""

_ASSEMBLY = r"""
    (?P<comment>[#;].*|//.*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<symbol>^[\w.$@]+:)
  | (?P<attribute>^\s+\.\w+)
  | (?P<value>%?\b(?:[xyz]mm\d+|k[0-7]|r\d+[dwb]?|[re]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][lh])\b)
  | (?P<number>(?<![\w.])\$?-?(?:0x[0-9A-Fa-f]+|\d+)\b)
  | (?P<operation>(?<=\t)[a-z]\w*)
"""

_REPORT = r"""
    (?P<operation>^\d+:.*)
  | (?P<symbol>\bguard\ \d+)
  | (?P<string>consecutive\ elements|one\ element)
  | (?P<type>\b(?:gather|scatter|one\ by\ one|one\ lane\ a\ step|asked\ lane\ by\ lane)\b)
"""

_PATTERNS = {
    language: re.compile(pattern, re.VERBOSE | re.MULTILINE)
    for language, pattern in {"ir": _IR, "llvm": _LLVM, "asm": _ASSEMBLY, "report": _REPORT}.items()
}


def highlight(text: str, language: str) -> str:
    """The text with terminal colours; `language` is 'ir', 'llvm', 'asm' or 'report'."""

    def colour(match: re.Match[str]) -> str:
        return click.style(match[0], **STYLES[match.lastgroup or ""])

    return _PATTERNS[language].sub(colour, text)

"""Kernels from text: each a module of its own, whose lines the compiler can read as those of a file."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import blocklang as bl
import blocklang.language as tl
import blocklang.triton as triton

_numbers = itertools.count()


def define(source: str, **names: Any) -> dict[str, Any]:
    """Run the text of a module in which `tl`, `bl` and `triton` are known; returns its names."""
    text = textwrap.dedent(source).strip() + "\n"
    path = f"<conformance {next(_numbers)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module: dict[str, Any] = {"__name__": "conformance", "tl": tl, "bl": bl, "triton": triton, **names}
    exec(compile(text, path, "exec"), module)
    return module

"""What became of a kernel's lines, and why: `blocklang explain`.

    report    the answer as data
    access    how an access runs: consecutive, broadcast, strided, gathered
    words     values of placed IR in the user's own names
    conditions what a fast version takes for granted
    build     a report from a run of the pipeline
    text      a report as text

Everything is read off the schedule and placed Tile IR, whose operations carry the user's lines. Nothing here
changes IR, and nothing below imports this room.
"""

from __future__ import annotations

from blocklang.explain.build import explain_kernel
from blocklang.explain.report import Access, Guard, Kept, Line, Loop, Product, Report
from blocklang.explain.text import format_report

__all__ = [
    "Access",
    "Guard",
    "Kept",
    "Line",
    "Loop",
    "Product",
    "Report",
    "explain_kernel",
    "format_report",
]

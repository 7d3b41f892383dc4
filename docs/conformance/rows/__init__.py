"""The rows, by group: every module here has `ROWS`."""

from __future__ import annotations

import importlib
import pkgutil

from docs.conformance.model import Row


def all_rows() -> list[Row]:
    """Every row; a group's stand together."""
    rows: list[Row] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        rows += importlib.import_module(f"{__name__}.{module}").ROWS
    groups = list(dict.fromkeys(row.group for row in rows))
    return [row for group in groups for row in rows if row.group == group]

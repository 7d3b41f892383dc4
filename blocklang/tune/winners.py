"""What an autotuner measured, on disk, so that another process need not measure again.

Results lie beside compiled kernels and are believed by the same rules (`blocklang.cache.store`): a file is
this user's alone, complete, and of the key in its name, or it is not there. The key is the content of the
kernel with all that it reads, the configs, the key of the launch, the compiler, and the machine with the
number of threads.

BLOCKLANG_AUTOTUNE_CACHE=0 has results neither looked up nor kept.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from typing import Any

from blocklang.cache.entries import Entry
from blocklang.cache.places import cache_directory, is_enabled
from blocklang.cache.store import Store
from blocklang.jit import JITFunction
from blocklang.runtime.threads import get_num_threads
from blocklang.tune.config import Config
from blocklang.tune.report import Row

_DIRECTORY = "autotune"
_LIMIT = 8 << 20  # bytes: some ten thousand results
_OFF = ("0", "false", "no", "off")
_stores: dict[str, Store] = {}


def store() -> Store:
    """Where results lie: a part of the disk cache (`blocklang.cache.places`)."""
    directory = os.path.join(cache_directory(), _DIRECTORY)
    return _stores.setdefault(directory, Store(directory, _LIMIT, "tuning result"))


def may_keep(asked: bool | None, is_usual: bool) -> bool:
    """True if results are looked up and kept.

    Args:
        asked: `cache_results=` of the autotuner; None where it says nothing.
        is_usual: it measures time with the usual clock.
    """
    if os.environ.get("BLOCKLANG_AUTOTUNE_CACHE", "").strip().lower() in _OFF:
        return False
    return is_usual and is_enabled() if asked is None else asked


def key_of(kernel: Any, *rest: object) -> str | None:
    """The name of a result; None if the kernel has no content that can be told.

    Args:
        kernel: what the autotuner launches: a kernel, or what wraps it.
        rest: what else the result depends on.
    """
    from blocklang.cache.identity import compiler_identity
    from blocklang.jit.capture import Captured
    from blocklang.jit.identity import Unidentified, kernel_identity

    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    if kernel.interpret:
        return None
    try:
        content = kernel_identity(kernel, Captured([kernel.fn]), (kernel.strict, kernel.debug))
    except (Unidentified, OSError, RecursionError):
        return None
    machine = (compiler_identity(), os.environ.get("BLOCKLANG_CPU") or "host", os.cpu_count())
    words = [str(word) for word in (content, *machine, get_num_threads(), *rest)]
    return hashlib.sha256("\0".join(f"{len(word)} {word}" for word in words).encode()).hexdigest()


def read(key: str, configs: Sequence[Config]) -> list[Row] | None:
    """What became of configs among these; None if it is not there."""
    entry = store().find(key)
    if entry is None:
        return None
    rows = entry.description["rows"]
    return [Row(configs[number], tuple(milliseconds), dropped) for number, milliseconds, dropped in rows]


def write(key: str, rows: Sequence[Row], configs: Sequence[Config]) -> None:
    """Keep what became of configs, if the directory can be written and all times are numbers."""
    if all(math.isfinite(time) for row in rows for time in row.milliseconds):
        described = [(configs.index(row.config), row.milliseconds, row.dropped) for row in rows]
        store().keep(key, Entry({"rows": described}, b""))

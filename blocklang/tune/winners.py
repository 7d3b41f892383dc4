"""What an autotuner measured, on disk, so that another process need not measure again.

One JSON file per kernel, key and set of configs, replaced atomically. A directory that cannot be read or
written is no error: then there is nothing to find, and nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blocklang.cache.places import cache_directory
from blocklang.tune.config import Config


def directory() -> Path:
    """Where results lie: a part of the disk cache (`blocklang.cache.places`)."""
    return Path(cache_directory()) / "autotune"


def path_of(*identity: object) -> Path:
    """The file for what these identify."""
    text = "\0".join(map(str, identity))
    return directory() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def read(path: Path, configs: Sequence[Config]) -> dict[Config, list[float]] | None:
    """The times of the configs; None if they are not there."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        found = {row["config"]: [float(t) for t in row["milliseconds"]] for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if any(str(config) not in found for config in configs):
        return None
    return {config: found[str(config)] for config in configs}


def write(path: Path, timings: Mapping[Config, Any]) -> None:
    """Keep the times, if the directory can be written."""
    import tempfile  # 4 ms, which a program that tunes nothing need not wait for

    rows = [{"config": str(config), "milliseconds": list(times)} for config, times in timings.items()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(rows, file)
        os.replace(temporary, path)
    except OSError:
        return

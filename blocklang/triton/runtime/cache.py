"""`triton.runtime.cache`: files kept between processes, by key.

Kernels are not kept here: libraries store what is theirs.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from blocklang.triton import knobs
from blocklang.triton.version import VERSION


class CacheManager:
    """Keeps files under a key; `get_file` and `put` are for subclasses."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key


class FileCacheManager(CacheManager):
    """Keeps files in `knobs.cache.dir`, replaced atomically."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        root = knobs.cache.override_dir if override else knobs.cache.dump_dir if dump else knobs.cache.dir
        self.cache_dir = str(Path(root) / key)

    def has_file(self, filename: str) -> bool:
        """True if there is such a file."""
        return (Path(self.cache_dir) / filename).exists()

    def get_file(self, filename: str) -> str | None:
        """The path of a file; None if there is none."""
        return str(Path(self.cache_dir) / filename) if self.has_file(filename) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Write a file; its path."""
        path = Path(self.cache_dir) / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        contents = data if isinstance(data, bytes) else str(data).encode()
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        os.replace(temporary, path)
        return str(path)


def get_cache_manager(key: str) -> CacheManager:
    """The manager for a key: `knobs.cache.manager_class`, or one that keeps files."""
    chosen = knobs.cache.manager_class
    manager: CacheManager = (chosen if isinstance(chosen, type) else FileCacheManager)(_shortened(key))
    return manager


def get_override_manager(key: str) -> CacheManager:
    """The manager of files that replace compiled ones."""
    return FileCacheManager(_shortened(key), override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The manager of files for a person to read."""
    return FileCacheManager(_shortened(key), dump=True)


def _shortened(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest() if len(key) > 128 or "/" in key else key


def triton_key() -> str:
    """Identifies the compiler."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("blocklang")
    except PackageNotFoundError:
        own = "unknown"
    return f"{VERSION}-blocklang-{own}"

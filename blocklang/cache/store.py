"""Entries in a directory: one file each, named by its key, replaced as a whole.

Processes share the directory without locks: a file appears complete or not at all, and two that write one key
write the same. When the files take more than the limit, those that were not used for longest go.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from blocklang.cache.entries import BrokenEntry, Entry, decode, encode
from blocklang.cache.places import KERNELS, cache_directory, is_enabled, size_limit
from blocklang.cache.trust import Untrusted, check_directory, read_own_file

_SUFFIX = ".kernel"
_UNFINISHED = ".part"  # a file that is being written
_ABANDONED_SECONDS = 3600.0  # after which nobody will finish it
_ROOM_LEFT = 0.8  # of the limit, after eviction
_LOOK_AGAIN = 256  # entries written until other processes' files are counted again


class Statistics:
    """What this process did with a store: entries found, not found, written, and found but not believed."""

    def __init__(self) -> None:
        self.hits = self.misses = self.kept = self.refused = 0


class KeptFile(NamedTuple):
    """A file of the store."""

    path: str
    bytes: int
    used: float


class Store:
    """The entries of one directory.

    Args:
        directory: where they lie; made when the first is kept.
        limit: how many bytes they may take.
        noun: what an entry is, for warnings.
    """

    def __init__(self, directory: str, limit: int, noun: str = "compiled kernel") -> None:
        self.directory = directory
        self.limit = limit
        self.noun = noun
        self.statistics = Statistics()
        self._numbers = itertools.count()
        self._bytes = 0
        self._written = 0
        self._warned: set[str] = set()

    def find(self, key: str) -> Entry | None:
        """The entry of a key; None if there is none that can be believed."""
        entry = self._read(key)
        if entry is None:
            self.statistics.misses += 1
        else:
            self.statistics.hits += 1
        return entry

    def _read(self, key: str) -> Entry | None:
        path = self._path(key)
        try:
            check_directory(self.directory)
            entry = decode(key, read_own_file(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Untrusted as error:
            self.statistics.refused += 1
            self._warn("untrusted", f"a {self.noun} on disk is not used: {error}")
            return None
        except OSError as error:
            self._warn("reading", f"the cache of {self.noun}s cannot be read: {error}")
            return None
        except BrokenEntry:
            self.statistics.refused += 1
            self._warn("broken", f"{path} is damaged: this {self.noun} is made again")
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return entry

    def keep(self, key: str, entry: Entry) -> None:
        """Keep an entry, if the directory can be written and it fits."""
        data = encode(key, entry)
        if len(data) > self.limit:
            return
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            check_directory(self.directory)
            self._make_room(len(data))
            self._write(self._path(key), data)
        except Untrusted as error:
            self.statistics.refused += 1
            self._warn("untrusted", f"{self.noun}s are not kept on disk: {error}")
        except OSError as error:
            self._warn(
                "writing",
                f"{self.noun}s are not kept on disk: {error}; set BLOCKLANG_CACHE_DIR to a directory "
                "that can be written, or BLOCKLANG_CACHE=0",
            )
        else:
            self.statistics.kept += 1

    def _write(self, path: str, data: bytes) -> None:
        unfinished = f"{path}.{os.getpid()}.{next(self._numbers)}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(unfinished, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise

    def _make_room(self, size: int) -> None:
        if self._written % _LOOK_AGAIN == 0:
            self._bytes = sum(file.bytes for file in self.files())
        self._written += 1
        self._bytes += size
        if self._bytes <= self.limit:
            return
        files = sorted(self.files(), key=lambda file: file.used)
        left = sum(file.bytes for file in files)
        for file in files:
            if left + size <= self.limit * _ROOM_LEFT:
                break
            _remove(file)
            left -= file.bytes
        self._bytes = left + size

    def files(self) -> Iterator[KeptFile]:
        """The entries' files. What a process left unfinished is removed on the way."""
        try:
            found = os.scandir(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        now = time.time()
        with found:
            for item in found:
                with contextlib.suppress(OSError):  # another process may remove it meanwhile
                    status = item.stat(follow_symlinks=False)
                    file = KeptFile(item.path, status.st_size, status.st_mtime)
                    if item.name.endswith(_SUFFIX):
                        yield file
                    elif item.name.endswith(_UNFINISHED) and now - file.used > _ABANDONED_SECONDS:
                        _remove(file)

    def clear(self) -> list[KeptFile]:
        """Remove every entry; what was removed.

        Raises:
            OSError: a file cannot be removed.
        """
        removed = list(self.files())
        for file in removed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.path)
        self._written = 0
        return removed

    def _path(self, key: str) -> str:
        return os.path.join(self.directory, key + _SUFFIX)

    def _warn(self, cause: str, message: str) -> None:
        """Warn once of each cause. Where warnings are errors this one is none: a launch must not fail."""
        if cause not in self._warned:
            self._warned.add(cause)
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(message, RuntimeWarning, stacklevel=2)


def _remove(file: KeptFile) -> None:
    with contextlib.suppress(OSError):
        os.unlink(file.path)


_stores: dict[tuple[str, int], Store] = {}
_pauses = 0


def named_store() -> Store:
    """The store of compiled kernels that the environment names, in use or not."""
    place = (os.path.join(cache_directory(), KERNELS), size_limit())
    return _stores.setdefault(place, Store(*place))


def shared_store() -> Store | None:
    """The store of compiled kernels to use; None if it is switched off."""
    return named_store() if is_enabled() and not _pauses else None


@contextlib.contextmanager
def cache_paused() -> Iterator[None]:
    """Compile everything anew, and keep nothing, while the context lasts."""
    global _pauses
    _pauses += 1
    try:
        yield
    finally:
        _pauses -= 1

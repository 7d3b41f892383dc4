"""The store: what is found, what is refused, what is evicted, and that no trouble with files is an error."""

from __future__ import annotations

import errno
import os
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from blocklang.cache import places
from blocklang.cache.entries import Entry
from blocklang.cache.store import Store, cache_paused, shared_store

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of files are POSIX's")
ENTRY = Entry({"name": "kernel"}, b"code" * 100)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "kernels"), limit=1 << 20)


def path_of(store: Store, key: str) -> Path:
    return Path(store.directory) / f"{key}.kernel"


def counts(store: Store) -> tuple[int, int, int, int]:
    found = store.statistics
    return found.hits, found.misses, found.kept, found.refused


def test_what_is_kept_is_found(store: Store) -> None:
    assert store.find("key") is None
    store.keep("key", ENTRY)
    assert store.find("key") == ENTRY
    assert Store(store.directory, store.limit).find("key") == ENTRY
    assert store.find("other") is None
    assert counts(store) == (1, 2, 1, 0)


@posix
def test_files_are_the_users_alone(store: Store) -> None:
    before = os.umask(0)
    try:
        store.keep("key", ENTRY)
    finally:
        os.umask(before)
    assert os.stat(store.directory).st_mode & 0o777 == 0o700
    assert path_of(store, "key").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(store.directory)) == ["key.kernel"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
def test_a_damaged_entry_is_removed_with_a_warning(store: Store, damage: str) -> None:
    store.keep("key", ENTRY)
    path = path_of(store, "key")
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        {
            "truncated": data[:middle],
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "empty": b"",
            "foreign": b"#!/bin/sh\n",
        }[damage]
    )
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert store.find("key") is None
    assert not path.exists()
    store.keep("key", ENTRY)
    assert store.find("key") == ENTRY


def test_an_entry_renamed_to_another_key_is_damaged(store: Store) -> None:
    store.keep("key", ENTRY)
    os.rename(path_of(store, "key"), path_of(store, "other"))
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert store.find("other") is None


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_a_file_that_others_may_write_is_refused(store: Store, mode: int) -> None:
    store.keep("key", ENTRY)
    path_of(store, "key").chmod(mode)
    with pytest.warns(RuntimeWarning, match="other users may write .*key.kernel.*chmod go-w"):
        assert store.find("key") is None
    assert counts(store) == (0, 1, 1, 1)


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_refused(store: Store, mode: int) -> None:
    store.keep("key", ENTRY)
    os.chmod(store.directory, mode)
    with pytest.warns(RuntimeWarning, match="other users may write"):
        assert store.find("key") is None
    store.keep("second", ENTRY)
    assert not path_of(store, "second").exists()
    os.chmod(store.directory, 0o700)
    assert store.find("key") == ENTRY


@posix
def test_files_of_another_user_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.keep("key", ENTRY)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert store.find("key") is None


@posix
def test_links_are_refused(store: Store, tmp_path: Path) -> None:
    store.keep("key", ENTRY)
    real = tmp_path / "elsewhere"
    os.rename(path_of(store, "key"), real)
    os.symlink(real, path_of(store, "key"))
    with pytest.warns(RuntimeWarning, match="is a link"):
        assert store.find("key") is None

    moved = tmp_path / "moved"
    os.rename(store.directory, moved)
    os.symlink(moved, store.directory)
    other = Store(store.directory, store.limit)
    with pytest.warns(RuntimeWarning, match="is a link"):
        assert other.find("key") is None


@posix
def test_a_pipe_in_the_place_of_an_entry_is_refused_without_waiting(store: Store) -> None:
    store.keep("key", ENTRY)
    path_of(store, "key").unlink()
    os.mkfifo(path_of(store, "key"), 0o600)
    with pytest.warns(RuntimeWarning, match="is not a file"):
        assert store.find("key") is None


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("")
    store = Store(str(tmp_path / "kernels"), 1 << 20)
    with pytest.warns(RuntimeWarning):
        assert store.find("key") is None
    store.keep("key", ENTRY)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["replace", "open", "makedirs"])
def test_a_file_that_cannot_be_written_costs_a_warning(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.warns(RuntimeWarning, match=f"not kept on disk: .*{os.strerror(code)}.*BLOCKLANG_CACHE"):
            store.keep("key", ENTRY)
        store.keep("key", ENTRY)  # it warns once
    assert not Path(store.directory).exists() or os.listdir(store.directory) == []
    assert store.find("key") is None


def test_a_full_disk_leaves_nothing_half_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, handle: int, mode: str) -> None:
            self.handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        def write(self, data: bytes) -> None:
            os.write(self.handle, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", Full)
        with pytest.warns(RuntimeWarning, match="No space"):
            store.keep("key", ENTRY)
    assert os.listdir(store.directory) == []


def test_an_unreadable_directory_costs_a_warning(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("blocklang.cache.store.check_directory", fail)
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert store.find("key") is None


def test_a_warning_is_no_error_where_warnings_are(store: Store) -> None:
    store.keep("key", ENTRY)
    path_of(store, "key").write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.find("key") is None


# ---- the limit ----


@pytest.fixture
def small(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "kernels"), limit=10_000)


def keep(store: Store, key: str, age: float) -> None:
    """Keep an entry of about 1000 bytes that was last used some seconds ago."""
    store.keep(key, Entry({}, bytes(950)))
    used = time.time() - age
    os.utime(path_of(store, key), (used, used))


def keys(store: Store) -> set[str]:
    return {Path(file.path).stem for file in store.files()}


def test_what_was_not_used_for_longest_goes(small: Store) -> None:
    for number in range(10):
        keep(small, f"k{number}", age=1000 - number)
    assert len(keys(small)) == 10
    assert small.find("k0") is not None  # used now
    keep(small, "new", age=0)
    left = keys(small)
    assert {"k0", "new", "k9"} <= left
    assert "k1" not in left
    assert sum(file.bytes for file in small.files()) <= small.limit


def test_the_limit_holds_for_many_processes_files(small: Store) -> None:
    others = [Store(small.directory, small.limit) for _ in range(5)]
    for number in range(100):
        others[number % 5].keep(f"k{number}", Entry({}, bytes(950)))
    small.keep("last", Entry({}, bytes(950)))
    assert sum(file.bytes for file in small.files()) <= small.limit
    assert "last" in keys(small)


def test_an_entry_larger_than_the_limit_is_not_kept(small: Store) -> None:
    keep(small, "key", age=0)
    small.keep("huge", Entry({}, bytes(20_000)))
    assert keys(small) == {"key"}


def test_what_a_killed_process_left_is_removed(small: Store) -> None:
    keep(small, "key", age=0)
    old, new = (Path(small.directory) / f"x.kernel.1.{n}.part" for n in range(2))
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert keys(small) == {"key"}
    assert not old.exists()
    assert new.exists()


def test_clear_removes_entries_and_nothing_else(small: Store) -> None:
    keep(small, "key", age=0)
    foreign = Path(small.directory) / "notes.txt"
    foreign.write_text("mine")
    assert len(small.clear()) == 1
    assert keys(small) == set()
    assert foreign.exists()
    assert Store(str(foreign.parent / "nowhere"), 1).clear() == []


# ---- settings ----


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("BLOCKLANG_CACHE", "BLOCKLANG_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


def test_where_the_cache_is(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.name == "posix":
        assert places.cache_directory() == str(tmp_path / ".cache" / "blocklang")
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_directory() == str(tmp_path / "xdg" / "blocklang")
    environment.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    assert places.cache_directory() == str(tmp_path / "triton")
    environment.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path / "own"))
    assert places.cache_directory() == str(tmp_path / "own")
    store = shared_store()
    assert store is not None
    assert store.directory == str(tmp_path / "own" / "kernels")
    assert shared_store() is store


@pytest.mark.parametrize("off", ["0", "false", "No", " off "])
def test_the_cache_is_switched_off(environment: pytest.MonkeyPatch, off: str) -> None:
    assert shared_store() is not None
    environment.setenv("BLOCKLANG_CACHE", off)
    assert shared_store() is None


def test_the_cache_is_paused(environment: pytest.MonkeyPatch) -> None:
    with cache_paused(), cache_paused():
        assert shared_store() is None
    assert shared_store() is not None


@pytest.mark.parametrize(
    ("text", "size"), [("", 256 << 20), ("1000", 1000), ("2k", 2048), ("500M", 500 << 20), (" 1 gb", 1 << 30)]
)
def test_sizes(environment: pytest.MonkeyPatch, text: str, size: int) -> None:
    environment.setenv("BLOCKLANG_CACHE_SIZE", text.replace(" g", "g"))
    assert places.size_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "M", "10T"])
def test_what_is_no_size_warns(environment: pytest.MonkeyPatch, text: str) -> None:
    environment.setenv("BLOCKLANG_CACHE_SIZE", text)
    with pytest.warns(UserWarning, match="which is no size"):
        assert places.size_limit() == places.DEFAULT_SIZE

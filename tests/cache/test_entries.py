"""The file of an entry: read back as it was written, and refused if anything of it has changed."""

from __future__ import annotations

import pytest

from blocklang.cache.entries import BrokenEntry, Entry, decode, encode

ENTRY = Entry({"name": "kernel", "written": [True, False], "text": "ü"}, bytes(range(256)) * 3)
KEY = "0123abcd"


def test_an_entry_is_read_back() -> None:
    assert decode(KEY, encode(KEY, ENTRY)) == ENTRY
    assert decode(KEY, encode(KEY, Entry({}, b""))) == Entry({}, b"")


def test_every_truncation_is_seen() -> None:
    data = encode(KEY, ENTRY)
    for length in range(len(data)):
        with pytest.raises(BrokenEntry):
            decode(KEY, data[:length])


def test_every_flipped_bit_is_seen() -> None:
    data = encode(KEY, ENTRY)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BrokenEntry):
            decode(KEY, bytes(changed))


def test_more_than_was_written_is_seen() -> None:
    with pytest.raises(BrokenEntry):
        decode(KEY, encode(KEY, ENTRY) + b"\0")


def test_an_entry_under_another_key_is_none() -> None:
    with pytest.raises(BrokenEntry):
        decode("another", encode(KEY, ENTRY))


def test_equal_entries_are_equal_files() -> None:
    assert encode(KEY, ENTRY) == encode(KEY, Entry(dict(ENTRY.description), ENTRY.object_code))

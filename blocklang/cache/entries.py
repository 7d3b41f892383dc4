"""One entry as bytes:

    magic, with the version of this format       8 bytes
    SHA-256 of the key and all that follows     32 bytes
    length of the description                    4 bytes
    the description, JSON                       UTF-8
    object code                                 the rest

The key is part of the digest: a file that was renamed is no entry of its new name. Reading builds nothing but
JSON's own types.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

_MAGIC = b"BLKC\x01\r\n\0"
_DIGEST_BYTES = 32
_LENGTH = struct.Struct("<I")
_HEADER_BYTES = len(_MAGIC) + _DIGEST_BYTES


class BrokenEntry(Exception):
    """The bytes are not what was written under this key."""


class Entry(NamedTuple):
    """What is kept under a key.

    Attributes:
        description: what a launch must know of the code, in JSON's types.
        object_code: a relocatable object.
    """

    description: Mapping[str, Any]
    object_code: bytes


def encode(key: str, entry: Entry) -> bytes:
    """The file of an entry."""
    text = json.dumps(entry.description, separators=(",", ":")).encode()
    body = _LENGTH.pack(len(text)) + text + entry.object_code
    return _MAGIC + _digest(key, body) + body


def decode(key: str, data: bytes) -> Entry:
    """Read the file of an entry.

    Raises:
        BrokenEntry: it was not written under this key, or not completely, or has changed since.
    """
    body = data[_HEADER_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEADER_BYTES] != _digest(key, body):
        raise BrokenEntry
    (length,) = _LENGTH.unpack_from(body)
    end = _LENGTH.size + length
    return Entry(json.loads(body[_LENGTH.size : end]), body[end:])


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + body).digest()

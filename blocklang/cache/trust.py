"""Whose files are believed: machine code runs only if nobody but this user can have written it.

A directory and a file must belong to the user who runs the process, must be writable by nobody else, and must
not be links. On Windows the user's own directory is believed.
"""

from __future__ import annotations

import functools
import operator
import os
import stat

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Links are not followed, and a pipe in the place of a file is not waited for; Windows has not all of these.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_OPEN = os.O_RDONLY | functools.reduce(operator.or_, (getattr(os, name, 0) for name in _FLAGS))


class Untrusted(Exception):
    """Somebody else could have written this; the text says what and how to mend it."""


def check_directory(path: str) -> None:
    """Raise unless a directory is this user's alone.

    Raises:
        Untrusted: it is a link, somebody else's, or others may write it.
        OSError: it is not there.
    """
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise Untrusted(f"{path} is a link or a file, not a directory; remove it")
    _check(path, status)


def read_own_file(path: str) -> bytes:
    """The content of a file that is this user's alone, and note that it was used.

    Raises:
        Untrusted: it is a link, somebody else's, or others may write it.
        OSError: it cannot be read.
    """
    if os.path.islink(path):
        raise Untrusted(f"{path} is a link; remove it")
    handle = os.open(path, _OPEN)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Untrusted(f"{path} is not a file; remove it")
        _check(path, status)
        return file.read()


def _check(path: str, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise Untrusted(f"{path} belongs to another user; remove it, or set BLOCKLANG_CACHE_DIR")
    if status.st_mode & _OTHERS_WRITE:
        raise Untrusted(f"other users may write {path}; run `chmod go-w {path}`")

"""`deep_recursion`: room for programs that are nested deeply, such as an `if` with 300 `elif`.

Python's limit counts frames of Python functions, which take no room on the machine's stack. The parts of
blocklang that follow a program's nesting recurse through such frames only, so they may go deeper than what
the limit is made for.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT = 12_000
_lock = threading.Lock()
_users = 0
_usual = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit inside the `with` block, for all threads, as the limit is one."""
    global _users, _usual
    with _lock:
        if _users == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(LIMIT, _usual))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and sys.getrecursionlimit() == max(LIMIT, _usual):
                sys.setrecursionlimit(_usual)

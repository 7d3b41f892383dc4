"""How many threads a launch may use.

From the strongest to the weakest: the launch's `num_threads=`, the innermost `with num_threads(n)`,
`set_num_threads`, `BLOCKLANG_NUM_THREADS`, and what the machine allows: the process's CPU affinity and its
cgroup's CPU quota, and `OMP_NUM_THREADS` if that is less.
"""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType

from blocklang.diagnostics import UsageError

_for_context: ContextVar[int | None] = ContextVar("blocklang_num_threads", default=None)
_for_process: int | None = None


def get_num_threads() -> int:
    """The number of threads that a launch here and now may use, the calling one included."""
    chosen = _for_context.get()
    if chosen is None:
        chosen = _for_process
    return default_num_threads() if chosen is None else chosen


def set_num_threads(count: int | None) -> None:
    """Use at most `count` threads in every launch of this process; None goes back to the default."""
    global _for_process
    _for_process = None if count is None else checked_count(count)


class num_threads(AbstractContextManager[None]):
    """Within `with num_threads(n):` launches use at most n threads; other Python threads do not see it."""

    def __init__(self, count: int) -> None:
        self._count = checked_count(count)
        self._tokens: list[Token[int | None]] = []

    def __enter__(self) -> None:
        self._tokens.append(_for_context.set(self._count))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _for_context.reset(self._tokens.pop())


def checked_count(count: object) -> int:
    """`count` as an int of at least 1. Raises UsageError otherwise."""
    try:
        number = count.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        number = 0
    if isinstance(count, bool) or number < 1:
        raise UsageError(f"the number of threads must be an integer of at least 1, not {count!r}")
    return int(number)


_default: int | None = None


def default_num_threads() -> int:
    """What the environment and the machine allow; read once per process."""
    global _default
    if _default is None:
        _default = _read_default()
    return _default


def _forget_default() -> None:
    global _default
    _default = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_default)


def _read_default() -> int:
    own = os.environ.get("BLOCKLANG_NUM_THREADS", "").strip()
    if own:
        if not own.isdecimal() or int(own) < 1:
            raise UsageError(
                f"BLOCKLANG_NUM_THREADS is {own!r}, not a number of threads",
                help="set it to an integer of at least 1, or unset it",
            )
        return int(own)
    return min(available_cpus(), _openmp_limit() or available_cpus())


def _openmp_limit() -> int | None:
    text = os.environ.get("OMP_NUM_THREADS", "").strip()
    if not text:
        return None
    first = text.split(",")[0].strip()  # a list has one number per nesting level
    if first.isdecimal() and int(first) >= 1:
        return int(first)
    warnings.warn(f"OMP_NUM_THREADS is {text!r}, which names no number of threads: ignored", stacklevel=2)
    return None


def available_cpus(cgroup_root: Path = Path("/sys/fs/cgroup")) -> int:
    """The CPUs this process may keep busy: its affinity, cut by the CPU quota of its cgroups, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    quota = _cgroup_quota(cgroup_root)
    return cpus if quota is None else max(1, min(cpus, quota))


def _cgroup_quota(root: Path) -> int | None:
    """The smallest CPU quota from this process's cgroup up to the root, rounded up; None without one."""
    quotas = [q for directory in _cgroup_directories(root) if (q := _quota_of(directory)) is not None]
    return min(quotas, default=None)


def _cgroup_directories(root: Path) -> list[Path]:
    directories: list[Path] = []
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root if not controllers else root / "cpu"
        inside = [part for part in path.split("/") if part not in ("", "..")]
        directories += [base.joinpath(*inside[:depth]) for depth in range(len(inside) + 1)]
    return directories or [root]


def _quota_of(directory: Path) -> int | None:
    fields = _read(directory / "cpu.max").split()  # cgroup v2: "quota period" or "max period"
    if not fields:
        fields = [
            _read(directory / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]  # v1; -1: none
    if len(fields) != 2 or not all(f.isdecimal() for f in fields) or int(fields[1]) == 0:
        return None
    return max(1, -(-int(fields[0]) // int(fields[1])))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""

"""`triton.set_allocator`: scratch memory of GPU kernels. On the CPU the compiler plans it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_allocator: ContextVar[Callable[..., Any] | None] = ContextVar("allocator", default=None)
_profile_allocator: ContextVar[Callable[..., Any] | None] = ContextVar("profile_allocator", default=None)


def set_allocator(allocator: Callable[..., Any]) -> None:
    """Remember `allocator(size, alignment, stream)`. No kernel needs it: scratch memory is planned."""
    _allocator.set(allocator)


def set_profile_allocator(allocator: Callable[..., Any] | None) -> None:
    """Remember an allocator for profiles; nothing asks for it."""
    _profile_allocator.set(allocator)

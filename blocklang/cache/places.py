"""Where the cache lies, and the environment variables that say so.

BLOCKLANG_CACHE        0 switches the cache of compiled kernels off
BLOCKLANG_CACHE_DIR    the directory (TRITON_CACHE_DIR if only that is set); by default `blocklang` in
                       XDG_CACHE_HOME or ~/.cache
BLOCKLANG_CACHE_SIZE   how many bytes compiled kernels may take, with K, M or G behind the number
"""

from __future__ import annotations

import os
import warnings

KERNELS = "kernels"  # the subdirectory of compiled kernels
DEFAULT_SIZE = 256 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_OFF = ("0", "false", "no", "off")


def is_enabled() -> bool:
    """False if BLOCKLANG_CACHE switches the cache off."""
    return os.environ.get("BLOCKLANG_CACHE", "").strip().lower() not in _OFF


def cache_directory() -> str:
    """The directory of everything that is kept between processes; it need not exist."""
    for name in ("BLOCKLANG_CACHE_DIR", "TRITON_CACHE_DIR"):
        if chosen := os.environ.get(name):
            return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "blocklang")


def size_limit() -> int:
    """How many bytes compiled kernels may take."""
    text = os.environ.get("BLOCKLANG_CACHE_SIZE", "").strip().upper().removesuffix("B")
    if not text:
        return DEFAULT_SIZE
    unit = text[-1] if text[-1] in _UNITS else ""
    number = text.removesuffix(unit)
    if number.isdecimal():
        return int(number) * _UNITS[unit]
    warnings.warn(
        f"BLOCKLANG_CACHE_SIZE is {text!r}, which is no size: 256M is used; write for instance 500M",
        stacklevel=2,
    )
    return DEFAULT_SIZE

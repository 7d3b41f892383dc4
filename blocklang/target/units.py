"""Units of device files: texts such as "24 MiB", "2.4 GHz", "23 B/ns" as numbers in base units, and back.

size        bytes               KiB, MiB, GiB are powers of 1024; KB, MB, GB powers of 1000
frequency   hertz
bandwidth   bytes per second
time        seconds
rate        operations per second; a multiply-add is two
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SIZES = {
    "B": 1,
    "bytes": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
UNITS: Mapping[str, Mapping[str, float]] = {
    "size": _SIZES,
    "frequency": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "bandwidth": {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "B/ns": 1e9},
    "time": _SECONDS,
    "rate": {"FLOPS": 1.0, "GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15},
}
EXAMPLES = {
    "size": "a size such as 4096 or '24 MiB'",
    "frequency": "a clock such as '2.4 GHz'",
    "bandwidth": "a bandwidth such as '23 B/ns'",
    "time": "a time such as '1300 ns'",
    "rate": "a rate such as '79 TFLOPS'",
}


def parse_quantity(text: str, dimension: str) -> float | None:
    """The number that a text with a unit stands for, in base units; None if it is no such text.

    Whole where the dimension is a size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ/]+)\s*", text)
    if match is None or match[2] not in UNITS[dimension]:
        return None
    value = float(match[1]) * UNITS[dimension][match[2]]
    if dimension == "size":
        return int(value) if value.is_integer() else None
    return value


def format_quantity(value: float, dimension: str) -> str:
    """A number in base units as people read it: 2.4e9 as '2.4 GHz'; what has no unit stays a number."""
    if dimension == "size":
        return format_size(value)
    if dimension not in UNITS:
        return f"{value:,.12g}"
    units = {unit: size for unit, size in UNITS[dimension].items() if unit not in ("us", "B/ns")}
    unit = max((unit for unit in units if units[unit] <= value), key=units.__getitem__, default=None)
    unit = unit or min(units, key=units.__getitem__)
    return f"{value / units[unit]:.6g} {unit}"


def format_size(count: float) -> str:
    """A number of bytes as people read it: 1536 as '1.5 KiB'."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.1f}".removesuffix(".0") + f" {unit}"
        count /= 1024
    raise AssertionError("the last unit takes everything")

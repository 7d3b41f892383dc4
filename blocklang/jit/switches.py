"""The switches of a launch, which decide what code is made for it.

`debug` takes True, False or words: `"nan"` looks for operations that make a NaN of numbers, `"poison"` fills
masked lanes of loads that name no `other`; several are joined by commas, and each turns the rest of the debug
mode on. They stand apart because kernels make NaN, and read zeros behind a mask, on purpose.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from blocklang.compiler.compiled import CompileOptions

NAN, POISON = "nan", "poison"
_WORDS = (NAN, POISON)


class Switches(NamedTuple):
    """What versions of a kernel differ in besides their arguments.

    Attributes:
        debug: check assertions, accesses and addresses.
        nan: look for NaN that is made of numbers.
        poison: fill masked lanes that no `other` fills.
        sanitize_overflow: check sums, differences and products of signed integers.
        enable_fp_fusion: `a * b + c` of floats is rounded once.
    """

    debug: bool = False
    nan: bool = False
    poison: bool = False
    sanitize_overflow: bool = False
    enable_fp_fusion: bool = False

    def debugging(self, value: bool | str) -> Switches:
        """These switches with another `debug`.

        Raises:
            ValueError: it is neither a bool nor words that are known.
        """
        if isinstance(value, bool):
            return self._replace(debug=value, nan=False, poison=False)
        if not isinstance(value, str):
            raise ValueError("it must be True or False")
        words = [word.strip() for word in value.split(",")]
        if not set(words) <= set(_WORDS):
            raise ValueError(f"it must be True, False or some of {', '.join(map(repr, _WORDS))}")
        return self._replace(debug=True, nan=NAN in words, poison=POISON in words)

    def compile_options(self) -> CompileOptions:
        """How Block IR that was built with these switches is compiled."""
        return CompileOptions(
            enable_fp_fusion=self.enable_fp_fusion, checks=self.debug, nan=self.nan, poison=self.poison
        )


NO_SWITCHES = Switches()


def is_on(setting: str) -> bool:
    """True for a switch of the environment that is set to anything but an off word."""
    return setting.strip().lower() not in ("", "0", "false", "no", "off")


def debug_setting() -> bool | str:
    """What BLOCKLANG_DEBUG and TRITON_DEBUG ask for: as `debug` of a launch; other words mean True."""
    setting = os.environ.get("BLOCKLANG_DEBUG", "").lower()
    words = {word.strip() for word in setting.split(",")}
    if words <= set(_WORDS):
        return setting
    return is_on(setting) or is_on(os.environ.get("TRITON_DEBUG", ""))

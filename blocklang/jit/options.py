"""The keywords of a launch that are not the kernel's: how to run it, and hints that GPUs want.

A kernel's own parameter of the same name comes first. Hints are checked and have no effect on a CPU's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from blocklang.diagnostics import LaunchError, UsageError
from blocklang.jit.parameters import Signature
from blocklang.jit.switches import Switches
from blocklang.runtime.threads import checked_count


class LaunchOptions(NamedTuple):
    """What a launch asked for besides its arguments.

    Attributes:
        switches: what code is made.
        num_threads: at most so many threads; None for the default.
        deterministic: float atomics take effect in ascending order of programs.
        values: every option as it was given, for a grid function.
    """

    switches: Switches
    num_threads: int | None
    deterministic: bool
    values: Mapping[str, Any]

    @property
    def threads(self) -> int | None:
        """At most so many threads; None for the default. Programs of one thread run in ascending order."""
        return 1 if self.deterministic else self.num_threads


def _is_power_of_two(value: object) -> bool:
    return isinstance(value, int) and value > 0 and value & (value - 1) == 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _anything(value: object) -> bool:
    return True


# Hints: what a value must be.
HINTS: dict[str, tuple[Callable[[object], bool], str]] = {
    "num_warps": (_is_power_of_two, "a power of two"),
    "num_stages": (_is_count, "an integer of at least 0"),
    "num_ctas": (_is_count, "an integer of at least 1"),
    "maxnreg": (lambda value: value is None or _is_count(value), "None or an integer"),
    "launch_pdl": (_anything, "a bool"),
    "ir_override": (lambda value: value is None, "None: the compiler starts from the kernel"),
    # For compilers of GPUs of one kind or another.
    **dict.fromkeys(
        (
            *("waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint", "warp_size"),
            *("minRegAutoWS", "maxRegAutoWS", "ptx_version", "ptx_options", "extern_libs"),
            *("instrumentation_mode", "max_num_imprecise_acc_default"),
        ),
        (_anything, "anything"),
    ),
}
# Options that change results or promise progress: refused by name until they mean something, unless off.
_NOT_YET = ("launch_cooperative_grid",)
_SWITCHES = ("enable_fp_fusion", "sanitize_overflow")
OPTION_NAMES = frozenset({*HINTS, *_NOT_YET, *_SWITCHES, "debug", "deterministic", "num_threads"})


def take_options(
    kwargs: Mapping[str, Any], signature: Signature, default: LaunchOptions
) -> tuple[LaunchOptions, Mapping[str, Any]]:
    """The launch options among the keywords of a launch, and the other keywords.

    Args:
        default: the options of a launch that names none.

    Raises:
        LaunchError: an option has a value without meaning.
    """
    values = {n: v for n, v in kwargs.items() if n in OPTION_NAMES and n not in signature.by_name}
    if not values:
        return default, kwargs
    for name, value in values.items():
        if name in HINTS and not HINTS[name][0](value):
            raise signature.error(f"launch option {name} is {value!r}", f"it must be {HINTS[name][1]}")
        if name in _NOT_YET and value:
            raise signature.error(f"launch option {name}={value!r} is not supported", f"leave out {name}")
    options = LaunchOptions(
        _switches(values, default.switches, signature),
        _threads(values.get("num_threads"), signature),
        _switch("deterministic", values.get("deterministic", False), signature),
        values,
    )
    return options, {n: v for n, v in kwargs.items() if n not in values}


def _switches(values: Mapping[str, Any], default: Switches, signature: Signature) -> Switches:
    switches = default._replace(
        **{name: _switch(name, values[name], signature) for name in _SWITCHES if name in values}
    )
    if "debug" not in values:
        return switches
    try:
        return switches.debugging(values["debug"])
    except ValueError as reason:
        raise signature.error(f"launch option debug is {values['debug']!r}", str(reason)) from None


def _switch(name: str, value: object, signature: Signature) -> bool:
    if not isinstance(value, bool):
        raise signature.error(f"launch option {name} is {value!r}", "it must be True or False")
    return value


def _threads(value: object, signature: Signature) -> int | None:
    if value is None:
        return None
    try:
        return checked_count(value)
    except UsageError as error:
        raise _as_launch_error(error, signature) from None


def _as_launch_error(error: UsageError, signature: Signature) -> LaunchError:
    return signature.error(f"launch option num_threads: {error.message}", "leave it out to use all CPUs")

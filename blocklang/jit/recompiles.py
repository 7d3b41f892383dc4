"""Why a kernel was compiled again: one line for each version, compiled or found on disk, on the logger
`blocklang.recompiles`.

BLOCKLANG_LOG=recompiles writes them to the standard error output. A line says what differs from the nearest
version that there was, the one with the fewest differences:

    add: version 2: argument 'n' is i32 (before: = 1)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from blocklang.jit.capture import Captured
from blocklang.jit.specialisation import ConstantSpec, Spec, Specialisation

LOGGER_NAME = "blocklang.recompiles"


def follow_environment() -> None:
    """Write to the standard error output if BLOCKLANG_LOG asks for it: a list of words, of which this reads
    `recompiles`.
    """
    words = [word.strip() for word in os.environ.get("BLOCKLANG_LOG", "").split(",")]
    if "recompiles" not in words:
        return
    import logging  # 5 ms that nobody needs who does not ask

    logger = logging.getLogger(LOGGER_NAME)
    if not any(isinstance(getattr(h, "stream", None), _StandardError) for h in logger.handlers):
        handler = logging.StreamHandler(_StandardError())
        handler.setFormatter(logging.Formatter("blocklang: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)


class _StandardError:
    """Writes to what `sys.stderr` is at that time."""

    def write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)


class Compilation(NamedTuple):
    """What one version was compiled for: its specialisation, and the globals that it read."""

    specialisation: Specialisation
    captured: Captured


def log_compilation(name: str, new: Compilation, earlier: Sequence[Compilation], number: int) -> None:
    """Say why `new`, compilation `number` of the kernel, was made, after the `earlier` ones."""
    if "logging" not in sys.modules:  # nobody listens
        return
    import logging

    logger = logging.getLogger(LOGGER_NAME)
    if not logger.isEnabledFor(logging.INFO):
        return
    reason = "the first"
    if earlier:
        differences = min((differences_between(new, old) for old in reversed(earlier)), key=len)
        reason = "; ".join(differences) or "compiled again"
    logger.info("%s: version %d: %s", name, number, reason)


def differences_between(new: Compilation, old: Compilation) -> list[str]:
    """In words, what one compilation has that another did not."""
    found = [
        f"argument {name!r} is {words_for(now)} (before: {words_for(before)})"
        for name, now, before in zip(
            new.specialisation.names, new.specialisation.specs, old.specialisation.specs, strict=True
        )
        if now is not before
    ]
    switches = new.specialisation.switches
    found += [
        f"{name}={now} (before: {before})"
        for name, now, before in zip(switches._fields, switches, old.specialisation.switches, strict=True)
        if now != before
    ]
    if new.specialisation.alias != old.specialisation.alias:
        found.append(f"arrays {new.specialisation.alias} (before: {old.specialisation.alias})")
    found += [f"{name} outside of the kernel has changed" for name in new.captured.differences(old.captured)]
    return found


def words_for(spec: Spec) -> str:
    """What the code knows of an argument."""
    if isinstance(spec, ConstantSpec) and callable(spec.value):
        return f"= {getattr(spec.value, '__name__', repr(spec.value))}"
    return str(spec)

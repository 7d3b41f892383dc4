"""What names mean while a function is compiled: frames, values that do not exist, and dependencies.

An environment maps names to values: a `tensor`, a compile-time value, a tuple of these, or `Undefined`.
Beside the user's names it holds the state of control flow under names that no user can write: whether control
has left by `return`, `break` or `continue` (a Python bool, or an int1 `tensor` where only the run tells), and
the value to return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blocklang.diagnostics import Location
from blocklang.frontend.source import KernelSource

RETURN = "<return>"
BREAK = "<break>"
CONTINUE = "<continue>"
FLAGS = (RETURN, BREAK, CONTINUE)
VALUE = "<value>"
STOPPED = "<stopped>"  # True once control is known to have left the current list of statements

Environment = dict[str, Any]


@dataclass(frozen=True)
class Undefined:
    """A name that has no value here.

    Attributes:
        reason: completes 'the name x ...'.
        help: what to do.
    """

    reason: str
    help: str


@dataclass(frozen=True)
class Dependency:
    """A value from outside that was read while a kernel was compiled.

    Attributes:
        name: how the kernel names it, for instance `BLOCK`, `config.WIDTH`, or the name of a called kernel.
        value: what it was; the fingerprint of its source for a called kernel.
        read: reads it again; raises LookupError or AttributeError if it is gone.
        container: where it was found: a module, a namespace, a closure's cell; of a function whose code is
            meant, the function.
    """

    name: str
    value: Any
    read: Callable[[], Any] = field(compare=False)
    container: Any = field(compare=False, repr=False)

    def is_current(self) -> bool:
        """True if the value is still the same."""
        try:
            now = self.read()
        except (LookupError, AttributeError, ValueError):
            return False
        if type(now) is not type(self.value):
            return False
        return bool(now is self.value or now == self.value or (now != now and self.value != self.value))


@dataclass
class Loop:
    """A loop that is being compiled.

    Attributes:
        carried: the names whose values matter when control leaves the body; None for all (unrolled loops).
    """

    carried: frozenset[str] | None


@dataclass
class Frame:
    """One function while its body is compiled.

    Attributes:
        source: where its text is.
        name: what messages call it.
        env: its names at this point.
        local_names: names that it assigns anywhere, which are therefore never global.
        parent: the frame around a nested function, whose names it sees.
        caller: the frame that called, and the place of the call.
        loops: the loops around the current statement, innermost last.
        declared: names that were declared constexpr, each with the statement.
    """

    source: KernelSource
    name: str
    env: Environment
    local_names: frozenset[str]
    parent: Frame | None = None
    caller: tuple[Frame, Location] | None = None
    loops: list[Loop] = field(default_factory=list)
    depth: int = 0
    declared: dict[str, object] = field(default_factory=dict)

    def stopped(self) -> bool:
        return bool(self.env.get(STOPPED))

    def reset_flags(self, *names: str) -> None:
        """Control is known to be here: none of the flags is set."""
        for name in names or FLAGS:
            self.env[name] = False
        self.env[STOPPED] = False

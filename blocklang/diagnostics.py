"""Source locations, the tree of errors, and how an error is shown to a person.

An error names what happened, what was expected, what was found and what to do instead, and shows the
user's line with a caret under the construct at fault:

    softmax.py:14:5: error: cannot store block<64xf32> through block<128xptr<f32>>
        tl.store(out + offs, y)
        ^^^^^^^^^^^^^^^^^^^^^^^
    help: the pointer block has 128 lanes; broadcast `y` or shorten `offs`

The tree:

    BlocklangError
    ├── CompilationError                  the user's kernel is at fault
    │   ├── UnsupportedLanguageConstruct  Python that a kernel cannot contain
    │   ├── CompileTimeAssertionFailure   `static_assert` was false
    │   └── InterpreterError              the kernel failed in interpreter mode
    ├── DeviceAssertionError              an assertion of a running program did not hold
    ├── CheckError                        a check of a running program failed: an address outside its array
    │   └── InterpretedCheckError         in interpreter mode; an InterpreterError too
    ├── LaunchError                       the launch or its arguments are at fault
    │   ├── UnknownArgument               a keyword is neither a parameter nor an option; a KeyError too
    │   └── ArgumentOverflow              no 64-bit integer holds the argument; an OverflowError too
    ├── ChangedGlobalError                a global that a strict kernel read has changed
    ├── OutOfResources                    a kernel needs more than there is
    ├── DeviceMemoryError                 an array of a device was used wrongly: freed twice, or overrun
    │   └── OutOfDeviceMemory             a device has no room left; a MemoryError too
    ├── AutotunerError                    no config is left to choose
    ├── ParseError                        IR text is at fault
    ├── UsageError                        a wrong pass name, level, file or option
    └── VerifyError                       a bug in blocklang: a pass broke the IR

`SlowCompilationWarning` is the one warning.

This module imports nothing but the standard library: every room may use it.
"""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A range in a source file. Lines count from 1, columns from 0 (as in `ast`); 0 as end means unknown."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}:{self.column + 1}"


UNKNOWN_LOCATION = Location("<unknown>", 0)


def _source_line(location: Location, source: str | None) -> str:
    """The text of the line at `location`: from `source` (the whole file's text) or from the file."""
    if source is not None:
        lines = source.splitlines()
        return lines[location.line - 1] if 0 < location.line <= len(lines) else ""
    return linecache.getline(location.file, location.line).rstrip("\n")


def render_caret(location: Location, source: str | None = None) -> str:
    """Return the source line of `location` with a line of carets under it, or '' if it cannot be read."""
    text = _source_line(location, source)
    if not text.strip():
        return ""
    indent = len(text) - len(text.lstrip())
    # AST columns count UTF-8 bytes; a caret counts characters.
    encoded = text.encode()
    start = len(encoded[: location.column].decode(errors="replace"))
    end = len(text)
    if location.end_line == location.line and location.end_column > location.column:
        end = len(encoded[: location.end_column].decode(errors="replace"))
    end = min(max(end, start + 1), len(text.rstrip()) if len(text.rstrip()) > start else start + 1)
    return f"    {text[indent:].rstrip()}\n    {' ' * max(start - indent, 0)}{'^' * (end - start)}"


class BlocklangError(Exception):
    """Base of every error that blocklang raises on purpose.

    Args:
        message: what happened, with what was expected and found.
        location: where in the user's file, if the error belongs to a line.
        help: what to write or do instead.
        source: the text of the whole file, for source that is not on disk.
    """

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        help: str | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.help = help
        self.source = source
        self.notes: list[str] = []  # the calls that lead to the place, innermost first

    @property
    def error_message(self) -> str:
        """The message alone, under the name that Triton gives it."""
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        state = {"location": self.location, "help": self.help, "source": self.source, "notes": self.notes}
        return (type(self), (self.message,), state)

    def __setstate__(self, state: dict[str, object] | None) -> None:
        self.__dict__.update(state or {})

    def render(self) -> str:
        """Return the whole message: position, text, source line with caret, notes, help."""
        known = self.location is not None and self.location.line > 0
        lines = [f"{self.location}: error: {self.message}" if known else f"error: {self.message}"]
        if known and self.location is not None:
            caret = render_caret(self.location, self.source)
            lines += [caret] if caret else []
        lines += [f"note: {note}" for note in self.notes]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class CompilationError(BlocklangError):
    """The user's kernel cannot be compiled."""

    @property
    def error_message(self) -> str:
        """What happened, without place and help; Triton's name for `message`."""
        return self.message


class UnsupportedLanguageConstruct(CompilationError):
    """The kernel contains Python that has no meaning in a kernel."""


class CompileTimeAssertionFailure(CompilationError):
    """A `static_assert` in the kernel was false."""


class InterpreterError(CompilationError):
    """The kernel failed while it was interpreted: an address outside its array, for instance."""


class DeviceAssertionError(BlocklangError, AssertionError):
    """An assertion of a running program did not hold. Also an `AssertionError`."""


class CheckError(BlocklangError):
    """What a program does while it runs is wrong: it leaves an array, for instance.

    Compiled code sees it with `debug=True` alone, interpreter mode an address outside of all arrays always.
    """


class InterpretedCheckError(CheckError, InterpreterError):
    """A `CheckError` in interpreter mode; also an `InterpreterError`."""


class LaunchError(BlocklangError, TypeError):
    """The launch of a kernel, or one of its arguments, is wrong. Also a `TypeError`."""


class ChangedGlobalError(BlocklangError, RuntimeError):
    """A global that a strict kernel read is not what it was when it was compiled. Also a `RuntimeError`."""


class UnknownArgument(LaunchError, KeyError):
    """A keyword of a launch is no parameter of the kernel and no launch option."""


class ArgumentOverflow(LaunchError, OverflowError):
    """An integer is beyond what 64 bits hold."""


class OutOfResources(BlocklangError):
    """A kernel needs more of something than the machine has.

    Args:
        required, limit: how much it needs, and how much there is.
        name: of what.
    """

    def __init__(self, required: object, limit: object, name: str) -> None:
        super().__init__(
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}",
            help="make the blocks smaller",
        )
        self.required = required
        self.limit = limit
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.required, self.limit, self.name))


class DeviceMemoryError(BlocklangError):
    """The memory of a device was used wrongly: freed twice, read after it was freed, written beside an array.

    Attributes:
        findings: what was written beside arrays (`blocklang.runtime.device_heap.Overrun`), if that is it.
    """

    findings: tuple[object, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        kind, arguments, state = super().__reduce__()
        assert isinstance(state, dict)
        return kind, arguments, {**state, "findings": self.findings}


class OutOfDeviceMemory(DeviceMemoryError, MemoryError):
    """A device has no room for an array. Also a `MemoryError`."""


class AutotunerError(BlocklangError):
    """An autotuner has no config to choose."""


class ParseError(BlocklangError):
    """IR text is malformed; the location points into that text."""


class UsageError(BlocklangError):
    """A command or API was asked for something that does not exist: a pass, a level, a kernel."""


class SlowCompilationWarning(UserWarning):
    """A kernel took long to compile; the message names the stage that took most of the time."""


class VerifyError(BlocklangError):
    """The IR broke one of its rules. This is a bug in blocklang, never the user's fault."""


def as_interpreter_error(error: CompilationError) -> CompilationError:
    """The error that interpreter mode raises for what the compiler refuses: of a kind of its own, or the
    same where that kind says more.
    """
    if isinstance(error, (InterpreterError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct)):
        return error
    failure = InterpreterError(
        error.message, location=error.location, help=error.help, source=error.source
    ).with_traceback(error.__traceback__)
    failure.notes = error.notes
    return failure

"""The command group: a user's mistake ends in a message and an exit status, never in a traceback of ours.

Exit statuses: 0 done; 1 the kernel, the script or the IR text is at fault; 2 the command line is (click's own
status for a wrong option). Anything else that is raised is a bug of blocklang and keeps its traceback.
"""

from __future__ import annotations

from typing import Any

import click

from blocklang.diagnostics import BlocklangError, UsageError, VerifyError


class Failure(click.ClickException):
    """A rendered error on its way to the terminal."""

    def __init__(self, error: BlocklangError) -> None:
        super().__init__("\n".join([error.render(), *getattr(error, "__notes__", ())]))
        self.is_bug = isinstance(error, VerifyError)

    def show(self, file: Any = None) -> None:
        click.echo(colour_error(self.message), err=True)
        if self.is_bug:
            click.echo(
                "This is a bug in blocklang, not in your kernel: please report it with the kernel.", err=True
            )


class WrongUsage(Failure):
    """The command line is at fault."""

    exit_code = 2


def colour_error(text: str) -> str:
    """A rendered error with its first word, carets and remedy in colour; click drops it off terminals."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number == 0:
            lines[0] = line.replace("error:", click.style("error:", fg="red", bold=True), 1)
        elif set(line.strip()) == {"^"}:
            lines[number] = click.style(line, fg="red")
        elif line.startswith("help:"):
            lines[number] = click.style("help:", fg="green", bold=True) + line.removeprefix("help:")
    return "\n".join(lines)


class ErrorGroup(click.Group):
    """A group whose commands may raise `BlocklangError`."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise WrongUsage(error) from error
        except BlocklangError as error:
            raise Failure(error) from error

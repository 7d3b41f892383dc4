"""Where the text of a stage goes: a file, a pipe or a terminal, coloured on a terminal only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from blocklang.cli.highlight import highlight
from blocklang.diagnostics import UsageError


def write_text(text: str, language: str, output: Path | None, colour: bool | None) -> None:
    """Write a stage's text.

    Args:
        language: 'ir', 'llvm', 'asm' or 'report'.
        output: a file, or None for standard output.
        colour: True or False if the user said so; None to decide by the terminal.
    """
    if output is not None:
        write_file(text, output, "-o")
    elif colour or (colour is None and terminal_has_colour()):
        click.echo(highlight(text, language), nl=False, color=True)
    else:
        click.echo(text, nl=False)


def terminal_has_colour() -> bool:
    """True if standard output is a terminal that shows colours and the user has not opted out (NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_file(text: str, output: Path, option: str) -> None:
    """Write text to the file that an option names. Raises UsageError if that cannot be done."""
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {output}: {error.strerror}", help=f"choose another file for {option}"
        ) from error

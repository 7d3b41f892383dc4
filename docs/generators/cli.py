"""The reference of the `blocklang` command, from its own help."""

from __future__ import annotations

from collections.abc import Iterator

import click

from blocklang.cli import main

WIDTH = 100


def help_of(command: click.Command, parent: click.Context | None, name: str) -> str:
    """What `--help` prints in a terminal of WIDTH columns."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    return command.get_help(context).rstrip()


def render() -> str:
    """The whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# The `blocklang` command"
    yield ""
    yield "Generated from the command's own help by `make docs`."
    yield ""
    yield from _section("blocklang", help_of(main, None, "blocklang"))
    group = click.Context(main, info_name="blocklang", **main.context_settings)
    for name, command in main.commands.items():
        yield from _section(f"blocklang {name}", help_of(command, group, name))


def _section(title: str, help: str) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "```text"
    yield help
    yield "```"
    yield ""

"""`blocklang cache`: what is kept on disk between processes, and how to be rid of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from blocklang.cache.places import cache_directory, is_enabled
from blocklang.cache.store import named_store
from blocklang.cache.trust import Untrusted, check_directory
from blocklang.diagnostics import UsageError
from blocklang.target import format_size
from blocklang.tune import winners


@click.group()
def cache() -> None:
    """Look at the disk cache of compiled kernels and tuning results, or clear it.

    BLOCKLANG_CACHE_DIR names another directory, BLOCKLANG_CACHE_SIZE the most that kernels may take (256M),
    BLOCKLANG_CACHE=0 switches both off, and BLOCKLANG_AUTOTUNE_CACHE=0 tuning results alone.

    \b
      blocklang cache info
      blocklang cache clear
    """


@cache.command()
def info() -> None:
    """Print where the cache is and what is in it."""
    for name, value in list_cache_facts():
        click.echo(f"{name:<15}{value}")


def list_cache_facts() -> Iterator[tuple[str, str]]:
    """What there is to know of the cache, by name."""
    store = named_store()
    try:
        files = list(store.files())
        tuned = list(winners.store().files())
    except OSError as error:
        raise _as_usage_error("read", error) from error
    yield "directory", cache_directory()
    yield "kernels", "in use" if is_enabled() else "switched off by BLOCKLANG_CACHE"
    for directory in (store.directory, winners.store().directory):
        if problem := _problem(directory):
            yield "problem", problem
    yield "entries", str(len(files))
    yield "size", f"{format_size(sum(file.bytes for file in files))} of at most {format_size(store.limit)}"
    yield "tuning results", str(len(tuned))


@cache.command()
def clear() -> None:
    """Remove every compiled kernel and tuning result from the disk cache."""
    try:
        removed = named_store().clear()
        tuned = winners.store().clear()
    except OSError as error:
        raise _as_usage_error("clear", error) from error
    size = format_size(sum(file.bytes for file in removed))
    click.echo(f"removed {len(removed)} kernels ({size}) and {len(tuned)} tuning results")


def _problem(directory: str) -> str | None:
    """Why entries would not be believed, or could not be kept."""
    if not os.path.lexists(directory):
        return None
    try:
        check_directory(directory)
    except Untrusted as error:
        return str(error)
    return None if os.access(directory, os.W_OK) else f"{directory} cannot be written"


def _as_usage_error(what: str, error: OSError) -> UsageError:
    return UsageError(
        f"cannot {what} the cache: {error.strerror}: {error.filename}",
        help="set BLOCKLANG_CACHE_DIR to a directory of your own",
    )

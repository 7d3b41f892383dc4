"""The forms of a report, by the end of a file's name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from blocklang.diagnostics import UsageError
from blocklang.emulation.page import format_page
from blocklang.emulation.profile import Profile
from blocklang.emulation.trace import format_trace


def format_json(profile: Profile) -> str:
    """The JSON report; docs/profile.md says what each key means."""
    return json.dumps(profile.to_dict(), indent=2) + "\n"


# The longer suffix first.
FORMS: dict[str, Callable[[Profile], str]] = {
    ".trace.json": format_trace,
    ".json": format_json,
    ".html": format_page,
}


def form_of(path: str | os.PathLike[str]) -> Callable[[Profile], str]:
    """What writes a report of that name.

    Raises:
        UsageError: its suffix stands for nothing.
    """
    name = Path(path).name.lower()
    for suffix, form in FORMS.items():
        if name.endswith(suffix):
            return form
    raise UsageError(
        f"cannot tell from its name what kind of report {os.fspath(path)} is",
        help="end it in .json (figures), .html (a page) or .trace.json (a timeline for Perfetto)",
    )


def save_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a report in the form that its name asks for.

    Raises:
        UsageError: the suffix stands for nothing, or the file cannot be written.
    """
    text = form_of(path)(profile)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {os.fspath(path)}: {error.strerror}", help="choose another file for the report"
        ) from error

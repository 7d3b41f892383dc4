"""What a kernel captures, and when that still holds."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

import blocklang.language as tl
from blocklang.jit.capture import Captured, Watched

NUMBER = 3
ITEMS = [1, 2]
SETTINGS = types.SimpleNamespace(width=4)
MODULE = types.ModuleType("settings")
MODULE.depth = 5  # type: ignore[attr-defined]


def helper() -> int:
    return NUMBER


def uses_number() -> object:
    return NUMBER + tl.float32.primitive_bitwidth


def uses_helper() -> int:
    return helper()


def uses_items() -> object:
    return ITEMS[0]


def uses_settings() -> object:
    return SETTINGS.width


def uses_module() -> object:
    return MODULE.depth


def uses_nested() -> object:
    return [NUMBER for _ in range(3)]


def uses_missing() -> object:
    return to_come  # type: ignore[name-defined] # noqa: F821


def names(captured: Captured) -> set[str | None]:
    return {watched.name for watched in captured.watched}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (uses_number, {"NUMBER", "tl"}),
        (uses_helper, {"helper", "NUMBER"}),
        (uses_items, {"ITEMS"}),
        (uses_settings, {"SETTINGS", "width"}),
        (uses_module, {"MODULE", "depth"}),
        (uses_nested, {"NUMBER", "range"}),
        (uses_missing, {"to_come"}),
    ],
)
def test_what_is_read(function: Callable[..., Any], expected: set[str]) -> None:
    captured = Captured([function])
    assert names(captured) == expected
    assert captured.hold()


def test_changes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [uses_helper, uses_settings, uses_module, uses_items, uses_missing]
    captured = {function.__name__: Captured([function]) for function in functions}
    here = globals()
    monkeypatch.setitem(here, "NUMBER", 4)
    monkeypatch.setattr(SETTINGS, "width", 9)
    monkeypatch.setattr(MODULE, "depth", 9)
    monkeypatch.setitem(here, "to_come", 1)
    ITEMS.append(3)
    try:
        assert not any(each.hold() for each in captured.values())
    finally:
        ITEMS.pop()


def test_an_equal_number_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NUMBER", 10**30)
    captured = Captured([uses_number])
    monkeypatch.setitem(globals(), "NUMBER", int("1" + "0" * 30))
    assert captured.hold()
    monkeypatch.setitem(globals(), "NUMBER", 1e30)
    assert not captured.hold()


def test_closures() -> None:
    value = 1

    def kernel() -> int:
        return value

    captured = Captured([kernel])
    assert captured.hold()
    value = 2
    assert not captured.hold()


def test_only_plain_dictionaries_and_cells_are_left_to_native_code() -> None:
    assert Captured([uses_number]).is_told_by_identity
    assert Captured([uses_module]).is_told_by_identity
    assert not Captured([uses_items]).is_told_by_identity
    assert not Watched(type("C", (), {"x": 1}), "x", 1).is_told_by_identity

"""Device descriptions: what is shipped, and what a wrong file is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from blocklang.diagnostics import UsageError
from blocklang.target import device_names, find_device, format_size

GOOD = """\
name = "mine"
title = "a device that does not exist"

[memory.global]
hardware = "DRAM"
bytes = { value = "1 GiB", source = "invented" }

[memory.scratch]
hardware = "SRAM"
partitions = { value = 64, source = "invented" }
partition_bytes = { value = 4096, source = "invented", unverified = true }
banks = { value = 2, source = "invented" }
"""


def read(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    find_device(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize("name", device_names())
def test_shipped_devices_are_complete(name: str) -> None:
    device = find_device(name)
    assert device.name == name
    assert set(device.memory) == {"global", "scratch", "accumulator"}
    assert device.on_chip == ("scratch", "accumulator")


def test_figures_of_trn2() -> None:
    memory = find_device("trn2").memory
    assert memory["scratch"].capacity_bytes == 28 << 20
    assert memory["accumulator"].capacity_bytes == 2 << 20
    banks = memory["accumulator"].banks
    assert banks is not None
    assert banks.value == 8


def test_a_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    device = find_device(str(tmp_path / "mine.toml"))
    scratch = device.memory["scratch"]
    assert device.on_chip == ("scratch",)
    assert device.memory["global"].capacity_bytes == 1 << 30
    assert scratch.capacity_bytes == 64 * 4096
    assert scratch.partition_bytes is not None
    assert scratch.partition_bytes.unverified


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', "", "name: expected a text, got nothing"),
        ('name = "mine"', "name = 3", "name: expected a text, got 3"),
        (
            "[memory.global]",
            "[memory.far]",
            "memory.far: expected one of global, scratch, accumulator, got an unk",
        ),
        ("banks =", "bank =", "memory.scratch.bank: expected one of hardware, aliases, bytes, "),
        (
            "value = 64",
            "value = -1",
            "memory.scratch.partitions.value: expected a whole number of at least 1, got -1",
        ),
        ("value = 64", "value = true", "partitions.value: expected a whole number of at least 1, got True"),
        (
            '"1 GiB"',
            '"1 gig"',
            "memory.global.bytes.value: expected a size such as 4096 or '24 MiB'",
        ),
        ('"1 GiB", source = "invented"', "3", "memory.global.bytes.source: expected a text, got nothing"),
        ("= true", '= "yes"', "partition_bytes.unverified: expected true or false, got 'yes'"),
        (
            ", unverified",
            ", checked",
            "partition_bytes.checked: expected one of value, source, unverified, got",
        ),
        (
            'partitions = { value = 64, source = "invented" }',
            "",
            "memory.scratch.partitions: expected a figure, as partitions and partition_bytes go together",
        ),
        (
            "banks = {",
            'bytes = { value = 9, source = "invented" }\nbanks = {',
            "memory.scratch.bytes: expected 262144, which is partitions x partition_bytes, got 9",
        ),
        ("name =", "name", "is not a TOML file"),
        (
            "banks = {",
            "banks = 2 #",
            "memory.scratch.banks: expected a figure: { value = ..., source = ... }, got 2",
        ),
    ],
)
def test_a_wrong_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert str(tmp_path / "mine.toml") in caught.value.message
    assert message in caught.value.message


def test_an_unknown_device_gets_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        find_device("trn4")
    assert caught.value.message == "there is no device 'trn4'"
    assert "a100, h100, h200, host, mi300x, trn1, trn2, trn3" in str(caught.value.help)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        find_device(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (28 << 20, "28 MiB"), (3 << 40, "3072 GiB")],
)
def test_sizes_as_people_read_them(count: int, text: str) -> None:
    assert format_size(count) == text

"""The pages on devices: nothing is left out, and the examples of the guide work."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from blocklang.target import find_device
from blocklang.target.device_file import parse_device
from blocklang.target.device_search import shipped_names
from docs.generators import devices

GUIDE = Path(devices.__file__).parents[1] / "device_files.md"


def test_every_figure_of_every_device_has_a_cell() -> None:
    page = devices.render()
    for name in shipped_names():
        device = find_device(name)
        assert re.search(rf"^\| figure .*\b{name}\b", page, re.MULTILINE)
        assert all(f"| `{instruction}` |" in page for instruction in device.instructions)
        assert all(each.name in page for each in device.published)
    assert "| `memory.scratch.partition_bytes` | 192 KiB | 224 KiB | 256 KiB |" in page


def test_the_smallest_file_of_the_guide_is_right() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert parse_device(blocks[0], "guide").name == "mine"
    rest = "\n".join(blocks[1:])
    assert "cost" in tomllib.loads(rest)


def test_the_python_of_the_guide_prints_what_it_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    printed: list[tuple[object, ...]] = []
    exec(code, {"print": lambda *values: printed.append(values)})
    said = [line.partition("# ")[2].split() for line in code.splitlines() if "# " in line]
    for values, words in zip(printed, said, strict=True):
        for value, word in zip(values, words, strict=True):
            if isinstance(value, str):
                assert value == word
            else:
                assert isinstance(value, int | float)
                assert f"{value:.3g}" == f"{float(word):.3g}"

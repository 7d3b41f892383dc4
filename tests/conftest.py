"""What every test shares: deterministic hypothesis, no disk cache, and golden files.

Not a place for kernels or helpers of one room; those stand beside the tests that use them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Tests look at what the compiler does now and leave the user's cache alone, in child processes too; those of
# `tests/cache` switch it on in directories of their own. With BLOCKLANG_CACHE=1 and a BLOCKLANG_CACHE_DIR all
# tests go through it: twice in a row, and every kernel comes from disk.
os.environ.setdefault("BLOCKLANG_CACHE", "0")
# Nor do they look at the user's own devices.
os.environ["BLOCKLANG_CONFIG_DIR"] = os.devnull
os.environ.pop("BLOCKLANG_DEVICE_PATH", None)

settings.register_profile("blocklang", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("blocklang")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files with what the code says now"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text equals the file `golden/<name>` beside the test, byte for byte.

    With `--update-golden` the file is written instead; read the difference before you commit it.
    """
    directory = Path(request.path).parent / "golden"
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = directory / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}; run with --update-golden and read what it writes")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            pytest.fail("\n".join(lines) or "only the line endings at the end differ", pytrace=False)

    return compare

"""What tells one CPU from another: only what LLVM could compile otherwise for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from blocklang.target import host

_CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: a name
stepping\t: 8
cpu MHz\t\t: 2100.000
flags\t\t: fpu sse2 avx2 {flag}
bogomips\t: 4200.00

processor\t: 1
vendor_id\t: Another
flags\t\t: fpu
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux' /proc/cpuinfo")


def identity(tmp_path: Path, text: str) -> str:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    return host.host_identity(str(path))


def test_model_and_features_count_and_clocks_do_not(tmp_path: Path) -> None:
    plain = identity(tmp_path, _CPUINFO.format(flag=""))
    assert plain == identity(tmp_path, _CPUINFO.format(flag="").replace("2100.000", "3500.000"))
    assert plain != identity(tmp_path, _CPUINFO.format(flag="avx512f"))
    assert plain != identity(tmp_path, _CPUINFO.format(flag="").replace("143", "144"))
    assert "Another" not in plain


def test_the_right_to_use_tiles_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for allowed in (True, False):
        monkeypatch.setattr(host, "may_use_tiles", lambda allowed=allowed: allowed)
        found.add(identity(tmp_path, _CPUINFO.format(flag="amx_tile")))
    assert len(found) == 2


def test_without_the_file_llvm_is_asked(tmp_path: Path) -> None:
    assert host.host_identity(str(tmp_path / "nowhere")).startswith("Target(")
    assert identity(tmp_path, "\n").startswith("Target(")

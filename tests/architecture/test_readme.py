"""What README promises holds: its programs run, its files and commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.rooms import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_programs_run(tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert programs
    for number, program in enumerate(programs):
        file = tmp_path / f"program_{number}.py"
        file.write_text(program, encoding="utf-8")
        start = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path({str(file)!r})"
        done = subprocess.run([sys.executable, "-W", "error", "-c", start], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_links_lead_somewhere() -> None:
    missing = [name for name in re.findall(r"\]\(([\w./-]+)\)", README) if not (ROOT / name).exists()]
    assert not missing


def test_named_examples_exist() -> None:
    missing = [name for name in re.findall(r"`(examples/\w+\.py)`", README) if not (ROOT / name).exists()]
    assert not missing


def test_the_two_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"\nmake {target}\n" in README
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)

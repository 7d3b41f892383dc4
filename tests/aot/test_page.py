"""`docs/ahead_of_time.md`: its kernel, its commands and its programs, in the order in which they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.aot.conftest import ROOT


def test_the_page_runs(linker: list[str], tmp_path: Path) -> None:
    page = (ROOT / "docs/ahead_of_time.md").read_text(encoding="utf-8")
    kernel, program = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    build, link = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (c_program,) = re.findall(r"^```c\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "kernels.py").write_text(kernel, encoding="utf-8")
    (tmp_path / "main.c").write_text(c_program, encoding="utf-8")

    def run(command: list[str], path: Path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shell = ["sh", "-e", "-c"]
    blocklang = f"blocklang() {{ '{sys.executable}' -m blocklang \"$@\"; }}\n"
    assert "build/libaxpy.so" in run([*shell, blocklang + build], ROOT)
    compiler = " ".join(f"'{word}'" for word in linker)
    assert run([*shell, f'cc() {{ {compiler} "$@"; }}\n{link}'], ROOT) == "9999\n"
    (wheel,) = (tmp_path / "build").glob("axpy-0.1.0-py3-none-*.whl")
    site = tmp_path / "site"
    unpack = f"import zipfile; zipfile.ZipFile({str(wheel)!r}).extractall({str(site)!r})"
    run([sys.executable, "-c", unpack], ROOT)
    assert run([sys.executable, "-c", program], site).strip()

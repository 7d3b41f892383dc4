"""`import blocklang` imports no framework, and neither does naming a door to one."""

from __future__ import annotations

import subprocess
import sys


def test_importing_blocklang_imports_no_framework() -> None:
    script = (
        "import sys, blocklang as bl; bl.torch, bl.jax; "
        "print([n for n in ('torch', 'jax', 'pandas', 'pyarrow') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

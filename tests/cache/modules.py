"""Modules of kernels made from text, as files that can be edited and imported anew."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from blocklang.jit.capture import Captured
from blocklang.jit.identity import kernel_identity

HEADER = """
import blocklang as bl
import blocklang.language as tl

"""


def load(directory: Path, text: str, name: str = "user_kernels", header: str = HEADER) -> ModuleType:
    """Write a module and import it, in the place of what had its name."""
    path = directory / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + textwrap.dedent(text))
    linecache.checkcache(str(path))
    linecache.cache.pop(str(path), None)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def identity(kernel: Any, *compiled_in: Any) -> str:
    """The digest of a kernel as it is now."""
    return kernel_identity(kernel, Captured([kernel.fn, *compiled_in]), compiled_in)


def run(kernel: Any, **arguments: Any) -> list[float]:
    """The eight numbers that a kernel `kernel(out, ...)` stores."""
    out = np.zeros(8, np.float32)
    kernel[(1,)](out, **arguments)
    return out.tolist()

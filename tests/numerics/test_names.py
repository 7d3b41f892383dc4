"""Every function of the language is called by some kernel of these tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blocklang.language as tl
from blocklang.ops.elementwise import FUNCTIONS

# The rules of the frontend have kernels of their own, which run compiled and interpreted as well.
FOLDERS = (
    Path(__file__).parent,
    Path(__file__).parents[1] / "frontend",
    Path(__file__).parents[1] / "programs",
)
SOURCE = "\n".join(path.read_text("utf-8") for folder in FOLDERS for path in sorted(folder.glob("*.py")))
# What builds or describes kernels, and what only speaks when they are compiled.
NOT_IN_KERNELS = {
    "_aggregate",
    "block_type",
    "core",
    "current_builder",
    "dtype",
    "static_print",
    "tensor",
    "to_tensor",
    "use_builder",
}


TYPES = {
    name for name in tl.__all__ if isinstance(getattr(tl, name), tl.dtype)
}  # `values.TYPES` has them all


@pytest.mark.parametrize("name", sorted(set(tl.__all__) - NOT_IN_KERNELS - TYPES))
def test_is_called(name: str) -> None:
    if name in FUNCTIONS:  # `test_maths.py` walks all of them
        assert hasattr(tl.math, name)
    elif name == "extra":  # `test_libdevice.py` walks all of it
        assert tl.extra.libdevice.__all__
    else:
        assert re.search(rf"\btl\.{name}\b", SOURCE) or re.search(rf"\bbl\.{name}\b", SOURCE)

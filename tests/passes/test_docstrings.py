"""The IR before and after in a pass's docstring is what the pass does."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import blocklang.passes
from tests.passes.cases import apply_passes, kernels_in

MODULES = [module.name for module in pkgutil.iter_modules(blocklang.passes.__path__)]
EXAMPLES = {
    name: kernels
    for name in MODULES
    if len(kernels := kernels_in(importlib.import_module(f"blocklang.passes.{name}").__doc__ or "")) == 2
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_pass_does_what_its_docstring_shows(name: str) -> None:
    before, after = EXAMPLES[name]
    run = getattr(importlib.import_module(f"blocklang.passes.{name}"), name)
    assert apply_passes(before, run) == after

"""The Block IR of small kernels, as a person reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blocklang.ir import parse_kernel
from tests.frontend import kernels
from tests.frontend.building import build


@pytest.mark.parametrize("name", kernels.CASES)
def test_the_ir(name: str, golden: Callable[[str, str], None]) -> None:
    function, types, constants = kernels.CASES[name]
    golden(f"{name}.blir", str(build(function, *types, **constants)))


@pytest.mark.parametrize("name", kernels.CASES)
def test_the_text_reads_back(name: str) -> None:
    function, types, constants = kernels.CASES[name]
    text = str(build(function, *types, **constants))
    assert str(parse_kernel(text)) == text


@pytest.mark.parametrize("name", kernels.CASES)
def test_every_operation_has_a_place_in_this_file(name: str) -> None:
    function, types, constants = kernels.CASES[name]
    for op in build(function, *types, **constants).walk():
        assert op.location.file == kernels.__file__
        assert op.location.line > 0

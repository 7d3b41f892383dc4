"""What the tests of passes share: running a pass on text, and the cases in golden files.

A golden file of a pass holds the IR before and after it, with a comment that says what the case shows:

    // a value that a loop carries but nobody reads
    kernel @k(...) {
      ...
    }

    // eliminate_dead_code
    kernel @k(...) {
      ...
    }

A new case is a new file with the first half alone; `pytest --update-golden` writes the second.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import blocklang.ops
from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ir.printer import print_kernel
from blocklang.ir.verifier import verify

GOLDEN = Path(__file__).parent / "golden"
Pass = Callable[[Kernel], None]

assert blocklang.ops.__all__, "the operations are declared"


def read_kernel(text: str) -> Kernel:
    """Parse and verify."""
    kernel = parse_kernel(text)
    verify(kernel)
    return kernel


def apply_passes(text: str, *passes: Pass) -> str:
    """The text of the kernel after the passes, verified after each."""
    kernel = read_kernel(text)
    for run in passes:
        run(kernel)
        verify(kernel)
    return print_kernel(kernel)


def cases_of(name: str) -> pytest.MarkDecorator:
    """Parametrise a test over the golden files of a pass, as paths below `golden`."""
    files = sorted(path.relative_to(GOLDEN).as_posix() for path in (GOLDEN / name).glob("*.ir"))
    assert files, f"{name} has no golden files"
    return pytest.mark.parametrize("case", files)


def check_case(golden: Callable[[str, str], None], case: str, *passes: Pass) -> None:
    """Run the passes on the first half of a golden file and compare with the second."""
    text = (GOLDEN / case).read_text(encoding="utf-8")
    separator = f"\n// {', '.join(run.__name__ for run in passes)}\n"
    before = text.split(separator)[0].rstrip("\n") + "\n"
    golden(case, f"{before}{separator}{apply_passes(before, *passes)}")


def kernels_in(docstring: str) -> list[str]:
    """The kernels that stand indented in a docstring, in full (a sketch with `...` is not one)."""
    blocks = re.findall(r"^    (?:kernel|tile|placed) @.*?^    }$", docstring, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) + "\n" for block in blocks if "..." not in block]

"""The example in every operation's docstring parses and verifies.

An example is a fragment: it uses values that it does not define. The test makes each of them an argument of a
kernel around the fragment. Its type is the type of the example's first result, unless `FREE_VALUES` says
otherwise; an operation whose example needs other types gets a line there.
"""

from __future__ import annotations

import re

import pytest

import blocklang.ops  # noqa: F401  (registers the operations)
from blocklang.ir import parse_kernel, print_kernel, verify
from blocklang.ir.core import Operation
from blocklang.ir.declaration import OPERATIONS
from blocklang.ir.printer import LEVEL_KEYWORDS
from docs.generators.ops import LEVELS, example_of, render, summary_of

BLOCK, MASK, POINTERS = "block<128xf32>", "block<128xi1>", "block<128xptr<f32>>"
A, B, ACC = "block<64x16xf32>", "block<16x32xf32>", "block<64x32xf32>"

# Operation: the types of its example's free values, where they are not the type of the first result.
FREE_VALUES: dict[str, dict[str, str]] = {
    "part": {"b": "buffer<8x64x32xf32>", "i": "i64"},
    "yield": {"a": BLOCK, "b": "i32"},
    "if": {"c": "i1"},
    "for": {"lo": "i32", "hi": "i32", "step": "i32"},
    "condition": {"c": "i1", "a": BLOCK},
    "while": {"c": "i1"},
    "splat": {"s": "f32"},
    "cmp": {"a": BLOCK, "b": BLOCK},
    "select": {"m": MASK},
    "cast": {"a": BLOCK},
    "bitcast": {"a": BLOCK},
    "report_fault": {"lane": "i32", "address": "i64"},
    "offset": {"i": "block<128xi32>"},
    "load": {"q": POINTERS, "m": MASK},
    "store": {"q": POINTERS, "v": BLOCK, "m": MASK},
    "atomic_rmw": {"q": POINTERS, "v": BLOCK, "m": MASK},
    "atomic_cas": {"q": "block<128xptr<i32>>", "c": "block<128xi32>", "v": "block<128xi32>"},
    "device_print": {"v": "f32"},
    "device_assert": {"lane": "i64"},
    "reduce": {"x": A},
    "arg_reduce": {"x": A},
    "reduce_with": {"x": BLOCK},
    "scan_buffers": {"buf": "buffer<64x32xf32>"},
    "dot": {"a": A, "b": B},
    "topk": {"x": "block<4x128xf32>"},
    "gather": {"x": "block<4x128xf32>", "index": "block<4x16xi32>"},
    "histogram": {"x": "block<128xi8>"},
    "sort_buffer": {
        "x": "buffer<4x1000xf32>",
        "keys": "buffer<1024xi32>",
        "y": "buffer<4x10xf32>",
    },
    "histogram_buffer": {
        "bins": "buffer<1000xi32>",
        "tables": "buffer<8x17xi32>",
        "h": "buffer<16xi32>",
    },
    "expand_dims": {"a": BLOCK},
    "broadcast": {"a": "block<128x1xf32>"},
    "reshape": {"a": BLOCK},
    "trans": {"a": "block<128x64xf32>"},
    "slice": {"a": "block<7xf32>"},
    "cat": {"x": "block<128xf32>", "y": "block<128xf32>"},
    "contract": {"a": A, "b": B},
    "read": {"buf": "buffer<64x32xf32>", "i": "i64", "j": "i64"},
    "write": {"buf": "buffer<64x32xf32>", "v": "f32", "i": "i64", "j": "i64"},
    "prefetch": {"q": "ptr<f32>"},
    "in_bounds": {"i": "i64", "lo": "i64", "hi": "i64"},
    "group": {"lo": "i64", "hi": "i64"},
    "lanes": {"lo": "i64", "hi": "i64", "b": "buffer<1000xf32>"},
    "memoise": {"row": "i64"},
    "tree_reduce": {"buf": "buffer<1000xf32>"},
    "contract_buffers": {"a": "buffer<64x16xf32>", "b": "buffer<16x32xf32>", "acc": "buffer<64x32xf32>"},
}


def free_values(example: str) -> list[str]:
    """Names that the example uses and does not define, in order of appearance."""
    heads = [line.split(" = ")[0] for line in example.splitlines() if re.match(r"\s*%[^=]*= [a-z]", line)]
    defined = re.findall(r"%(\w+)", " ".join(heads)) + re.findall(r"%(\w+): ", example)
    return [name for name in dict.fromkeys(re.findall(r"%(\w+)", example)) if name not in defined]


def wrap(cls: type[Operation]) -> str:
    """A whole kernel around the example of an operation."""
    example = example_of(cls)
    first_line = example.splitlines()[0]
    default = re.sub(r" \{$", "", first_line.rpartition(" : ")[2]).split(", ")[0]
    types = FREE_VALUES.get(cls.name, {})
    arguments = ", ".join(f"%{name}: {types.get(name, default)}" for name in free_values(example))
    keyword = LEVEL_KEYWORDS[next(level for level in LEVELS if level in cls.levels)]
    end = "" if cls.is_terminator else "return"
    return f"{keyword} @example({arguments}) {{\n{example}\n{end}\n}}"


@pytest.mark.parametrize("cls", OPERATIONS.values(), ids=list(OPERATIONS))
def test_example_parses_and_verifies(cls: type[Operation]) -> None:
    kernel = parse_kernel(wrap(cls), f"the example of {cls.name}")
    verify(kernel)
    assert cls.name in [op.name for op in kernel.walk()]
    assert print_kernel(parse_kernel(print_kernel(kernel))) == print_kernel(kernel)


@pytest.mark.parametrize("cls", OPERATIONS.values(), ids=list(OPERATIONS))
def test_docstring_says_what_it_does(cls: type[Operation]) -> None:
    assert summary_of(cls).endswith("."), "a sentence, a blank line, then the example"


def test_hints_name_operations_and_values() -> None:
    for name, types in FREE_VALUES.items():
        assert types.keys() <= set(free_values(example_of(OPERATIONS[name]))), name


def test_page_lists_every_operation() -> None:
    page = render()
    assert all(f"\n### {name}\n" in page for name in OPERATIONS)

"""A kernel's digest: another one for all that can change its code, the same one for everything else."""

from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path

import pytest

from blocklang.jit.identity import Unidentified, source_text
from tests.architecture.rooms import ROOT
from tests.cache.modules import HEADER, identity, load

BASE = """
import collections
import enum
import math
import types

import numpy as np

SCALE = 2
TABLE = (1, 2.0, "three", None, tl.float32)
SETTINGS = types.SimpleNamespace(width=8, nested=types.SimpleNamespace(depth=3))
WORD = tl.constexpr(5)
KIND = tl.float32
NUMBER = np.float32(1.5)
Pair = collections.namedtuple("Pair", "first second")
PAIR = Pair(1, 2)

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

CHOICE = Colour.RED

@bl.jit
def inner(x):
    return x * SCALE

@bl.jit
def helper(x, factor=3):
    return inner(x) + factor

@bl.constexpr_function
def size(n):
    return rounded(n) + math.gcd(4, 6)

def rounded(n):
    return n * 2

@bl.aggregate
class Range:
    low: tl.tensor
    high: tl.tensor

    @bl.jit
    def width(self):
        return self.high - self.low

def make(offset):
    @bl.jit
    def closed(out):
        tl.store(out + tl.arange(0, 8), offset)
    return closed

closed = make(7)

@bl.jit
def kernel(out, BLOCK: tl.constexpr = 8):
    cols = tl.arange(0, BLOCK)
    v = helper(cols) + TABLE[0] + SETTINGS.width + SETTINGS.nested.depth + WORD + size(4) + PAIR.first
    if CHOICE == Colour.RED:
        v += Range(1, 2).width()
    tl.store(out + cols, (v + NUMBER).to(KIND))
    # the end
"""


def changed(old: str, new: str) -> str:
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


def test_the_same_text_is_the_same_kernel(tmp_path: Path) -> None:
    assert identity(load(tmp_path, BASE).kernel) == identity(load(tmp_path, BASE).kernel)


def test_the_file_is_no_part_of_the_digest(tmp_path: Path) -> None:
    text = "N = 3\n@bl.jit\ndef half(x):\n    return x / N\n"
    text += "@bl.jit\ndef kernel(out):\n    tl.store(out, half(1))\n"
    first = load(tmp_path / "a", text)
    assert identity(first.kernel) == identity(load(tmp_path / "b", "\n\n" + text, "renamed").kernel)


def test_another_process_has_the_same_digest(tmp_path: Path) -> None:
    expected = identity(load(tmp_path, BASE).kernel)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import user_kernels; from tests.cache.modules import identity; print(identity(user_kernels.kernel))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2", "SCALE = 3"),
        ("SCALE = 2", "SCALE = 2.0"),
        ("SCALE = 2", "SCALE = True"),
        ("(1, 2.0,", "(4, 2.0,"),
        ('"three", None, tl.float32', '"three", None, tl.float16'),
        ("width=8", "width=9"),
        ("depth=3", "depth=4"),
        ("tl.constexpr(5)", "tl.constexpr(6)"),
        ("KIND = tl.float32", "KIND = tl.float64"),
        ("np.float32(1.5)", "np.float64(1.5)"),
        ("np.float32(1.5)", "np.float32(-1.5)"),
        ("Pair(1, 2)", "Pair(3, 2)"),
        ('"first second"', '"second first"'),
        ("RED = 1", "RED = 3"),
        ("CHOICE = Colour.RED", "CHOICE = Colour.BLUE"),
        ("return x * SCALE", "return x + SCALE"),
        ("factor=3", "factor=4"),
        ("rounded(n) + math", "rounded(n) - math"),
        ("math.gcd(4, 6)", "math.gcd(4, 8)"),
        ("math.gcd(4, 6)", "math.lcm(4, 6)"),
        ("return n * 2", "return n * 3"),
        ("self.high - self.low", "self.low - self.high"),
        ("    low: tl.tensor\n", "    low: tl.constexpr\n"),
        ("BLOCK: tl.constexpr = 8", "BLOCK: tl.constexpr = 16"),
        ("BLOCK: tl.constexpr = 8", "BLOCK = 8"),
        ("cols = tl.arange(0, BLOCK)\n    v", "cols = tl.arange(1, BLOCK + 1)\n    v"),
        ("@bl.jit\ndef inner", "@bl.jit(strict=True)\ndef inner"),
        ("@bl.jit\ndef kernel", "@bl.jit(strict=True)\ndef kernel"),
    ],
)
def test_what_is_read_is_part_of_the_digest(tmp_path: Path, old: str, new: str) -> None:
    before = identity(load(tmp_path, BASE).kernel)
    assert identity(load(tmp_path, changed(old, new)).kernel) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2", "UNUSED = 7\nSCALE = 2"),
        ("\nclosed = make(7)", "\n\n\n\nclosed = make(7)"),
        ("@bl.jit\ndef inner", "# a comment in between\n@bl.jit\ndef inner"),
        ("def make(offset)", "def unused():\n    pass\n\ndef make(offset)"),
        ("closed = make(7)", "closed = make(8)"),
    ],
)
def test_what_is_not_read_is_no_part_of_it(tmp_path: Path, old: str, new: str) -> None:
    before = identity(load(tmp_path, BASE).kernel)
    assert identity(load(tmp_path, changed(old, new)).kernel) == before


def test_closures_and_constants_count(tmp_path: Path) -> None:
    module = load(tmp_path, BASE)
    assert identity(module.closed) != identity(module.make(8))
    assert identity(module.closed) == identity(module.make(7))
    values = [1, 1.0, True, None, "1", (1,), ((1,),), -0.0, 0.0, float("nan"), module.KIND, module.inner]
    assert len({identity(module.kernel, value) for value in values}) == len(values)
    assert identity(module.kernel, 1, 2) != identity(module.kernel, (1, 2))
    assert identity(module.kernel, "ab", "c") != identity(module.kernel, "a", "bc")


@pytest.mark.parametrize("way", ["global", "constant", "in a tuple", "method"])
def test_text_that_was_read_counts_as_it_was_read(tmp_path: Path, way: str) -> None:
    """An edit after the first compilation does not change what this process compiles."""
    text = """
        @bl.jit
        def helper(x):
            return x + 1

        @bl.aggregate
        class Holder:
            x: tl.tensor
            double = helper

        TUPLE = (1, (helper,))

        @bl.jit
        def kernel(out):
            tl.store(out, USE)
    """
    use = {
        "global": "helper(1)",
        "constant": "1",
        "in a tuple": "TUPLE[1][0](1)",
        "method": "Holder(1).double()",
    }
    module = load(tmp_path, text.replace("USE", use[way]))
    constants = (module.helper,) if way == "constant" else ()
    before = identity(module.kernel, *constants)
    assert "x + 1" in module.helper.source.text
    path = Path(module.__file__ or "")
    path.write_text(path.read_text().replace("x + 1", "x + 2"))
    linecache.checkcache()
    assert identity(module.kernel, *constants) == before
    del module.helper.__dict__["source"]
    assert identity(module.kernel, *constants) != before


def test_equal_names_of_two_modules_are_told_apart(tmp_path: Path) -> None:
    def kernel_of(first: int, second: int, third: str) -> str:
        for name, value in (("one", first), ("two", second)):
            load(tmp_path, f"N = {value}\n@bl.jit\ndef scaled(x):\n    return x * N\n", f"module_{name}")
        text = f"""
            import module_one, module_two
            from module_{third} import scaled as third
            @bl.jit
            def kernel(out):
                tl.store(out, module_one.scaled(1) + module_two.scaled(2) + third(3))
        """
        return identity(load(tmp_path, text).kernel)

    found = [kernel_of(a, b, c) for a in (1, 2) for b in (1, 2) for c in ("one", "two")]
    assert len(set(found)) == len(found)


def test_a_missing_name_counts(tmp_path: Path) -> None:
    text = "@bl.jit\ndef kernel(out):\n    tl.store(out, min(1, 2))\n"
    before = identity(load(tmp_path, text).kernel)
    shadowed = "@bl.jit\ndef min(a, b):\n    return a\n" + text
    assert identity(load(tmp_path, shadowed).kernel) != before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\ndef f():\n    return len(os.environ)\n", "_Environ"),
        ("import os\ndef f():\n    return os.getpid()\n", "builtin"),
        ("import time\ndef f():\n    return time.time()\n", "builtin"),
        ("import random\ndef f():\n    return random.random()\n", "builtin"),
        ("import os\ndef f():\n    o = os\n    return o.getpid()\n", "module os as a value"),
        ("def f():\n    import os\n    return os.getpid()\n", "imports"),
        ("def f():\n    return len(open('/etc/hostname').read())\n", "`open`"),
        ("def f():\n    return eval('1')\n", "`eval`"),
        ("import functools\n@functools.lru_cache\ndef g():\n    return 1\ndef f():\n    return g()\n", "lru"),
        ("class C:\n    n = 1\ndef f():\n    return C.n\n", "class"),
        ("class C:\n    n = 1\nc = C()\ndef f():\n    return c.n\n", "C"),
        ("c = []\nc.append(c)\ndef f():\n    return len(c)\n", "nested"),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: Path, text: str, reason: str) -> None:
    text += "@bl.constexpr_function\ndef size():\n    return f()\n"
    text += "@bl.jit\ndef kernel(out):\n    tl.store(out, size())\n"
    module = load(tmp_path, text)
    if "append(c)" in text:
        with pytest.raises((Unidentified, RecursionError)):
            identity(module.kernel)
        return
    with pytest.raises(Unidentified, match=reason):
        identity(module.kernel)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x):\n    return x\n", "def f(x):\n    return x\n"),
        ("def f(x): return x\ny = 1\n", "def f(x): return x\n"),
        ("def f(x):\n    return x\n    # trailing\n\n# after\ny = 1\n", "def f(x):\n    return x\n"),
        (
            'def f(x):\n    """\nflush left\n"""\n# flush too\n    return (\n  x)\ny = 1\n',
            'def f(x):\n    """\nflush left\n"""\n# flush too\n    return (\n  x)\n',
        ),
        ("def f(x):\n    if x:\n        return 1\n    else:\n        pass\ndef g(): pass\n", None),
        ("@str\n@(\nstr)\ndef g(): pass\n@staticmethod\ndef f(x):\n    return [\n1]\n\n", None),
    ],
)
def test_text_of_a_function(tmp_path: Path, text: str, expected: str | None) -> None:
    import ast

    function = load(tmp_path, text, header="").f
    function = getattr(function, "__func__", function)
    if expected is None:
        node = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == "f")
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        expected = "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])
    assert source_text(function) == expected


def test_a_function_without_a_file_has_no_text() -> None:
    namespace: dict[str, object] = {}
    exec(HEADER + "def f():\n    return 1\n", namespace)
    function = namespace["f"]
    assert source_text(function) == ""  # type: ignore[arg-type]

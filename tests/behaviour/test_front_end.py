"""The rows about the front end: what Python may stand in a kernel, what it means, what errors say,
in both modes."""

from __future__ import annotations

import ast
import functools
import importlib
import io
import linecache
import pdb  # noqa: T100
import re
import sys
import textwrap
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.behaviour import front_end_kernels as kernels
from tests.behaviour.rows import MODES, array, as_mode, launch, row
from tests.frontend.building import define
from tests.frontend.programs import program
from tests.numerics.launching import Out

types = pytest.mark.parametrize


def kernel_of(
    body: str, mode: str, signature: str = "out, n, N: tl.constexpr", **names: Any
) -> bl.JITFunction:
    """A kernel with a body given as text; `bl`, `np` and the helper `twice` are known to it."""
    text = "@jit\ndef twice(x):\n    return x * 2\n\n"
    text += f"def kernel({signature}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    return bl.jit(interpret=mode == "interpreted")(define(text, "kernel", bl=bl, np=np, **names))


def stored(body: str, mode: str, n: Any = 4, count: int = 4, **names: Any) -> list[int]:
    out = np.full(count, -99, np.int32)
    kernel_of(body, mode, **names)[1](out, n, N=3)
    return [int(v) for v in out if v != -99]


# ---- unsupported Python ----

# By node of Python's grammar: a body that contains it, and what the error must name; None if it is supported.
STATEMENTS: dict[str, tuple[str, str | None]] = {
    "FunctionDef": ("def f(x):\n    return x + 1\ntl.store(out, f(n))", None),
    "AsyncFunctionDef": ("async def f(x):\n    return x", "async"),
    "ClassDef": ("class C:\n    pass", "class"),
    "Return": ("return", None),
    "Delete": ("del n", "del"),
    "Assign": ("x = n", None),
    "TypeAlias": ("type T = int", "type"),
    "AugAssign": ("n += 1", None),
    "AnnAssign": ("x: tl.constexpr = 2", None),
    "For": ("for i in range(n):\n    pass", None),
    "AsyncFor": ("async for i in n:\n    pass", "async"),
    "While": ("while n > 5:\n    n -= 1", None),
    "If": ("if n > 2:\n    pass", None),
    "With": ("with open('x') as f:\n    pass", "with"),
    "AsyncWith": ("async with n:\n    pass", "async"),
    "Match": ("match n:\n    case 1:\n        pass", "match"),
    "Raise": ("raise ValueError(n)", "raise"),
    "Try": ("try:\n    pass\nexcept ValueError:\n    pass", "try"),
    "TryStar": ("try:\n    pass\nexcept* ValueError:\n    pass", "try"),
    "Assert": ("assert n > 0", None),
    "Import": ("import math", "import"),
    "ImportFrom": ("from math import pi", "import"),
    "Global": ("global G\nG = 1", "global"),
    "Nonlocal": ("def f():\n    nonlocal n\n    n = 1\nf()", "nonlocal"),
    "Expr": ("n", None),
    "Pass": ("pass", None),
    "Break": ("for i in range(n):\n    break", None),
    "Continue": ("for i in range(n):\n    continue", None),
}
EXPRESSIONS: dict[str, tuple[str, str | None]] = {
    "BoolOp": ("n > 1 and n < 9", None),
    "NamedExpr": ("(y := n)", ":="),
    "BinOp": ("n + 1", None),
    "UnaryOp": ("-n", None),
    "Lambda": ("(lambda a: a + 1)(n)", None),
    "IfExp": ("n if n > 1 else 3", None),
    "Dict": ("{1: n}", "dict"),
    "Set": ("{1, n}", "set"),
    "ListComp": ("[twice(a) for a in (n, 2)][0]", None),
    "SetComp": ("{a for a in (n, 2)}", "set"),
    "DictComp": ("{a: a for a in (n, 2)}", "dict"),
    "GeneratorExp": ("max(*(a for a in (n, 2)))", None),
    "Await": ("await n", "await"),
    "Yield": ("(yield n)", "yield"),
    "YieldFrom": ("(yield from n)", "yield"),
    "Compare": ("1 < n < 9", None),
    "Call": ("twice(n)", None),
    "JoinedStr": ("len(f'{N}')", None),
    "TemplateStr": ("len(t'{N}')", "t-string|template"),
    "Constant": ("3", None),
    "Attribute": ("tl.constexpr(N).value", None),
    "Subscript": ("(n, 2)[0]", None),
    "Starred": ("max(*(n, 2))", None),
    "Name": ("n", None),
    "List": ("[n, 2][0]", None),
    "Tuple": ("(n, 2)[0]", None),
    "Slice": ("(n, 2, 3)[0:2][0]", None),
}
_INNER = {"FormattedValue", "Interpolation"}  # parts of a string, never alone
FIELDS = [  # known nodes with a field or operator that a kernel cannot have
    ("matrix product", "tl.store(out, n @ n)", "@"),
    ("two targets", "x = y = n\ntl.store(out, x + y)", None),
    ("decorated function", "@twice\ndef f(x):\n    return x", "decorat"),
    ("async comprehension", "x = [a async for a in (n, 2)]", "async"),
    ("type parameters", "def f[T](x):\n    return x", "type param"),
    ("is not, of numbers", "tl.store(out, 1 if n is not None else 0)", None),
    ("not in", "tl.store(out, 1 if N not in (1, 2) else 0)", None),
    ("spread keywords", "tl.store(out, **{'value': 1})", r"\*\*"),
    ("slice with a step", "tl.store(out, (n, 2, 3)[::2][0])", None),
    ("ellipsis", "x = tl.arange(0, 4)[...]", "Ellipsis|ellipsis|\\.\\.\\."),
    ("item assignment", "x = tl.arange(0, 4)\nx[0] = 1", "assign"),
    ("attribute assignment", "x = tl.arange(0, 4)\nx.y = 1", "assign|attribute"),
    ("del of an item", "del out[0]", "del"),
    ("a set of strings", "x = {'a'}", "set"),
    ("bytes", "x = b'abc'", "bytes"),
    ("complex", "x = 2j", "complex"),
    ("augmented matrix product", "n @= 2", "@"),
    ("starred target", "a, *b = (1, 2, 3)", "starred"),
    ("an unknown method", "tl.store(out, tl.arange(0, 4).mean())", "mean"),
    ("a function of NumPy", "tl.store(out, np.sin(n))", "sin|np|Python"),
]


def refused(body: str, mode: str) -> bl.CompilationError:
    out = np.full(4, -99, np.int32)
    with pytest.raises(bl.CompilationError) as caught:
        kernel_of(body, mode)[1](out, 4, N=3)
    assert (out == -99).all(), "nothing runs of a kernel that is refused"
    return caught.value


def check_construct(body: str, word: str | None, mode: str) -> None:
    """Supported, or an error that names the construct, the file, the line and the column."""
    try:
        ast.parse(body)
    except SyntaxError:
        pytest.skip("grammar of a later Python")
    if word is None:
        kernel_of(body, mode)[1](np.zeros(4, np.int32), 4, N=3)
        return
    try:
        error = refused(body, mode)
    except SyntaxError:  # `await` outside of `async def` is none of Python
        return
    assert re.search(word, error.message), error.message
    assert error.location is not None
    assert error.location.file.startswith("<test")
    assert error.location.line >= 6
    assert (
        error.location.end_column > error.location.column >= 4
        or error.location.end_line > error.location.line
    )


@MODES
@types("node", STATEMENTS)
@row("The front end", "unsupported Python")
def test_every_statement_is_supported_or_refused_by_name(node: str, mode: str) -> None:
    """An allow-list: a statement that a kernel cannot have names itself, its file, line and column."""
    check_construct(*STATEMENTS[node], mode)


@MODES
@types("node", EXPRESSIONS)
@row("The front end", "unsupported Python")
def test_every_expression_is_supported_or_refused_by_name(node: str, mode: str) -> None:
    """The same for expressions."""
    text, word = EXPRESSIONS[node]
    check_construct(f"tl.store(out, {text})", word, mode)


@MODES
@types(("name", "body", "word"), FIELDS, ids=[f[0] for f in FIELDS])
@row("The front end", "unsupported Python")
def test_unknown_fields_of_known_nodes_are_refused_by_name(
    name: str, body: str, word: str | None, mode: str
) -> None:
    """An operator, a target or an option of a construct that is known is not silently left out."""
    check_construct(body, word, mode)


@row("The front end", "unsupported Python")
def test_no_node_of_pythons_grammar_is_forgotten() -> None:
    """Every kind of statement and expression that this Python's `ast` knows has its line above."""
    for base, table in ((ast.stmt, STATEMENTS), (ast.expr, EXPRESSIONS)):
        kinds = {c.__name__ for c in base.__subclasses__()} - _INNER
        old = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}  # deprecated names of Constant
        assert kinds - old <= set(table), kinds - set(table)


# ---- scalar control flow ----


@MODES
@row("The front end", "scalar control flow")
def test_random_programs_mean_what_cpython_means(mode: str) -> None:
    """Nested loops, branches, breaks, early returns, chains of comparisons: the results are Python's."""
    launcher = (
        "x, y, z = program(a, b, c, s)\nfor k in tl.static_range(3):\n    tl.store(out + k, (x, y, z)[k])"
    )
    for seed in range(5000, 5030):
        text = program(seed)
        python = define(text, "program", static_range=range)
        called = bl.jit(define(text, "program", static_range=tl.static_range))
        kernel = kernel_of(launcher, mode, "out, a, b, c, s", program=called)
        random = Random(seed)
        values = (*(random.randint(-4, 6) for _ in range(3)), random.choice([-2, -1, 1, 3]))
        out = np.zeros(3, np.int32)
        kernel[1](out, *values)
        assert out.tolist() == [int(v) for v in python(*values)], f"seed {seed}, {values}\n{text}"


FLOW = {
    "chained comparisons": (
        "r = 0\nfor i in range(-3, 9):\n    if -1 <= i < n != i + 2 <= 6:\n"
        "        r = r * 3 + i"
    ),
    "each operand once": "r = 0\nfor i in range(9):\n    r += i if 2 < i * i - n <= 20 > i else -1",
    "and, or": "r = 0\nfor i in range(6):\n    r = r * 2 + ((i > 1 and i != n) or i == 0)",
    "short circuit": "r = 0\nfor i in range(6):\n    if i != 0 and 12 // i > n:\n        r += i",
    "the operand that decides": "r = (n - 4 or 7) + (n and 5) + (0 or n) * 10",
    "not": "r = (not n) + 2 * (not (n > 4)) + 4 * (not not n)",
    "negative steps": "r = 0\nfor i in range(10, n - 6, -3):\n    r = r * 5 + i",
    "steps at run time": "r = 0\nfor i in range(n, -n, n - 6):\n    r = r * 5 + i",
    "empty ranges": "r = 1\nfor i in range(n, n - 1):\n    r = 2\nfor i in range(n, n + 3, -1):\n    r = 3",
    "the index is the user's": "r = 0\nfor i in range(n):\n    r += i\n    i = 100\n    r += i",
    "the index afterwards": "r = 0\ni = 7\nfor i in range(n):\n    pass\nr = i",
    "break, else": "r = 0\nfor i in range(9):\n    if i > n:\n        break\n    r += i\nelse:\n    r = -1",
    "else without break": "r = 0\nfor i in range(n):\n    r += i\nelse:\n    r += 100",
    "continue in while": (
        "r = 0\ni = 0\nwhile i < 9:\n    i += 1\n    if i % 2 == n % 2:\n"
        "        continue\n    r += i"
    ),
    "while, else": (
        "r = n + 1\nwhile r < 50:\n    r = r * 2\n    if r == 33:\n"
        "        break\nelse:\n    r += 1"
    ),
    "break of the inner loop": (
        "r = 0\nfor i in range(n):\n    for j in range(n):\n        if j > i:\n"
        "            break\n        r += 10 * i + j"
    ),
    "nested conditional": "r = (1 if n > 5 else 2 if n > 3 else 3) * 10 + (n if n else -n)",
    "bounds are read once": "m = n\nr = 0\nfor i in range(m):\n    m = 0\n    r += 1",
    "a swap in a loop": "a = 1\nb = 1\nfor i in range(n):\n    a, b = b, a + b\nr = a * 100 + b",
}  # fmt: skip


@MODES
@types("name", FLOW)
@types("n", [0, 1, 4, 7])
@row("The front end", "scalar control flow")
def test_control_flow_is_pythons(name: str, n: int, mode: str) -> None:
    """The text is run by Python and as a kernel."""
    names: dict[str, Any] = {"n": n}
    exec(FLOW[name], names)
    assert stored(FLOW[name] + "\ntl.store(out, r)", mode, n) == [int(names["r"])]


@MODES
@types("n", [0, 1, 2, 3, 9])
@row("The front end", "scalar control flow")
def test_early_returns(n: int, mode: str) -> None:
    """From branches, loops and nested loops of the kernel, and of a function that it calls."""
    text = "def first(n):\n    if n == 1:\n        return 10\n    for i in range(n):\n        while i < 5:\n"
    text += "            if i == 2:\n                return i + 100\n            i += 1\n    return 7\n"
    python = define(text, "first")
    body = "if n == 0:\n    return\ntl.store(out, first(n))\nif n > 2:\n    return\ntl.store(out + 1, 5)"
    expected = [] if n == 0 else [python(n)] if n > 2 else [python(n), 5]
    assert stored(body, mode, n, first=bl.jit(define(text, "first"))) == expected


# ---- constexpr branches ----

WRONG = "x = tl.arange(0, 4) + tl.arange(0, 5)\nundefined_name(x).nothing\nimport math\ntl.store(out, 'text')"


@MODES
@types(
    "body",
    [
        "if N == 3:\n    tl.store(out, 1)\nelse:\n    {wrong}",
        "if N != 3:\n    {wrong}\nelif N == 3:\n    tl.store(out, 1)\nelse:\n    {wrong}",
        "tl.store(out, 1)\nif N == 3:\n    return\n{wrong0}",
        "tl.store(out, 1 if N == 3 else undefined_name)",
        "tl.store(out, 1)\nif N == 4 and undefined_name:\n    {wrong}",
        "tl.store(out, 1)\nif not (N == 3 or undefined_name):\n    {wrong}",
        "tl.store(out, 1)\nfor i in tl.static_range(0):\n    {wrong}",
        "tl.store(out, 1)\nwhile N > 3:\n    {wrong}",
        "tl.store(out, 1)\nif n is None:\n    {wrong}",
        "tl.store(out, 1)\nif n.dtype == tl.float32:\n    {wrong}",
        "tl.store(out, 1)\nif isinstance(N, str):\n    {wrong}",
        "if tl.constexpr(True):\n    y = 1\nelse:\n    y = 2.5\ntl.store(out, y)",
    ],
)
@row("The front end", "constexpr branches")
def test_a_branch_not_taken_does_not_exist(body: str, mode: str) -> None:
    """It may contain wrong types, undefined names and Python that is refused elsewhere."""
    text = body.replace("{wrong0}", WRONG).replace("{wrong}", WRONG.replace("\n", "\n    "))
    assert stored(text, mode) == [1]


# ---- source lookup ----

TEXT = "import blocklang.language as tl\n\ndef kernel(out, n):\n    tl.store(out, n + 1)\n"


def check_runs(function: Any, mode: str) -> None:
    out = np.zeros(1, np.int32)
    bl.jit(interpret=mode == "interpreted")(function)[1](out, 41)
    assert out[0] == 42


def registered(function: Any) -> Any:
    return function


def traced(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@MODES
@row("The front end", "source lookup")
def test_source_of_notebooks_and_of_exec_with_linecache(mode: str) -> None:
    """A cell's text stands in `linecache` under a name that is no file; each run of a cell is a
    text of its own."""
    for name in ("<ipython-input-1-abc>", "/tmp/ipykernel_1/2.py", "<python-input-0>"):
        for text in (TEXT, TEXT.replace("n + 1", "n + 2 - 1")):
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            names: dict[str, Any] = {}
            exec(compile(text, name, "exec"), names)
            check_runs(names["kernel"], mode)
        del linecache.cache[name]


@MODES
@row("The front end", "source lookup")
def test_source_of_one_liners_indented_and_decorated_functions(mode: str) -> None:
    """A `def` on one line, two on one line, inside a block, under several decorators, in a method's
    closure."""

    def kernel(out, n): tl.store(out, n + 1)  # type: ignore[no-untyped-def] # fmt: skip

    check_runs(kernel, mode)
    check_runs(define("def other(x): return x\ndef kernel(out, n): tl.store(out, n + 1)\n", "kernel"), mode)
    if True:

        @registered
        @registered
        def stacked(out: Any, n: Any) -> None:
            tl.store(out, n + 1)

    check_runs(stacked, mode)
    check_runs(
        define("if True:\n        def kernel(out, n):\n            tl.store(out, n + 1)\n", "kernel"), mode
    )
    continued = (
        "def kernel(out,\n           n):\n    tl.store(\nout, n\n  + 1)  # a comment\n\n    # the end\n"
    )
    check_runs(define(continued, "kernel"), mode)


@MODES
@row("The front end", "source lookup")
def test_a_wrapper_around_a_kernel_gives_the_remedy(mode: str) -> None:
    """What stands between `jit` and the function is not left out silently; `jit` belongs directly
    above it."""

    @traced
    def wrapped(out: Any, n: Any) -> None:
        tl.store(out, n + 1)

    with pytest.raises(bl.CompilationError, match="plain Python function") as caught:
        check_runs(wrapped, mode)
    assert "above `def wrapped`" in (caught.value.help or "")
    tuned = bl.autotune([bl.Config({"N": 2})], key=["n"])
    steps = bl.heuristics({"K": lambda args: args["n"] + 1})
    text = (
        "@registered\ndef kernel(out, n, N: tl.constexpr, K: tl.constexpr):\n    tl.store(out, n * N + K)\n"
    )
    kernel = bl.jit(interpret=mode == "interpreted")(define(text, "kernel", registered=registered))
    out = np.zeros(1, np.int32)
    tuned(steps(kernel))[(1,)](out, 5)
    assert out[0] == 16


@MODES
@row("The front end", "source lookup")
def test_source_in_a_zip_archive(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is imported from an archive has its source there."""
    name = f"zipped_{mode}"
    with zipfile.ZipFile(tmp_path / "kernels.zip", "w") as archive:
        archive.writestr(f"{name}.py", TEXT)
    monkeypatch.syspath_prepend(str(tmp_path / "kernels.zip"))
    check_runs(importlib.import_module(name).kernel, mode)
    del sys.modules[name]


@MODES
@row("The front end", "source lookup")
def test_source_that_is_nowhere_gives_the_remedy(mode: str) -> None:
    """`exec` without linecache, `python -c` and the like: the message says what to do."""
    names: dict[str, Any] = {"tl": tl}
    exec(compile(TEXT, "<nowhere>", "exec"), names)
    with pytest.raises(bl.CompilationError, match="cannot be found") as caught:
        check_runs(names["kernel"], mode)
    assert "linecache" in (caught.value.help or "")


# ---- globals and closures ----


@MODES
@types("values", [(3, 5, 3), (1, True, 1.0), (2, tl.constexpr(3), 4), ((1, 2), (2, 1), (1, 2))])
@row("The front end", "globals and closures")
def test_a_changed_global_is_compiled_in_anew(values: tuple[Any, ...], mode: str) -> None:
    """Globals are read at compile time, by value; another value at the next launch compiles again."""
    for use in ("G", "user()"):
        body = f"def kernel(out):\n    tl.store(out, {use}[0] if isinstance({use}, tuple) else {use} * 2)\n"
        if use == "user()":
            body = "def kernel(out):\n    x = user()\n    tl.store(out, x)\n"
        text = f"@jit\ndef user():\n    return G[0] if isinstance(G, tuple) else G * 2\n\n{body}"
        function: Any = define(text, "kernel", G=0)
        kernel = bl.jit(interpret=mode == "interpreted")(function)
        for value in values:
            function.__globals__["G"] = value
            plain = getattr(value, "value", value)
            for _ in range(2):
                out = np.zeros(1, np.float32)
                kernel[1](out)
                assert out[0] == (plain[0] if isinstance(plain, tuple) else plain * 2)


@MODES
@row("The front end", "globals and closures")
def test_a_changed_closure_is_compiled_in_anew(mode: str) -> None:
    """Captured variables too, also of functions that the kernel calls; helpers may be local, and
    defined later."""
    scale = 2

    def kernel(out: Any, n: Any) -> None:
        tl.store(out, later(n) * scale)

    @bl.jit
    def later(x: Any) -> Any:
        return x + scale

    made = bl.jit(interpret=mode == "interpreted")(kernel)
    for scale in (2, 7, 2):
        out = np.zeros(1, np.int32)
        made[1](out, 5)
        assert out[0] == (5 + scale) * scale


@MODES
@row("The front end", "globals and closures")
def test_a_helper_that_is_defined_anew_is_compiled_in_anew(mode: str) -> None:
    """As in a notebook, where the cell of a helper is run again with another text."""
    kernel = kernel_of(
        "tl.store(out, helper(n))", mode, helper=bl.jit(define("def helper(x): return x + 1\n", "helper"))
    )
    out = np.zeros(1, np.int32)
    kernel[1](out, 4, N=3)
    assert out[0] == 5
    kernel.fn.__globals__["helper"] = bl.jit(define("def helper(x): return x * 3\n", "helper"))
    kernel[1](out, 4, N=3)
    assert out[0] == 12


@MODES
@row("The front end", "globals and closures")
def test_strict_kernels_refuse_globals_that_are_no_constexpr_or_have_changed(mode: str) -> None:
    """Triton's two errors: a NameError's text at compile time, a RuntimeError at the next launch."""
    function: Any = define("def kernel(out):\n    tl.store(out, G)\n", "kernel", G=4)
    strict = functools.partial(bl.jit, strict=True, interpret=mode == "interpreted")
    out = np.zeros(1, np.int32)
    with pytest.raises(bl.CompilationError, match="Cannot access global variable G"):
        strict()(function)[1](out)
    function.__globals__["G"] = tl.constexpr(4)
    kernel = strict()(function)
    kernel[1](out)
    assert out[0] == 4
    function.__globals__["G"] = tl.constexpr(5)
    with pytest.raises(RuntimeError, match="global variable G has changed"):
        kernel[1](out)


@MODES
@types("text", ["def r(n):\n    return r(n)\n", "def r(n):\n    return r(n - 1) if n > 0 else n\n",
                "def r(n):\n    return s(n)\n@jit\ndef s(n):\n    return r(n) + 1\n"])  # fmt: skip
@row("The front end", "globals and closures")
def test_recursion_without_end_is_refused_by_name(text: str, mode: str) -> None:
    """Direct, by a run-time condition, and through another function; one over constexprs ends and works."""
    body = f"{text}\ndef kernel(out, n):\n    tl.store(out, r(n))\n"
    function = define("@jit\n" + body, "kernel")
    with pytest.raises(bl.CompilationError, match=r"calls of `[rs]`.* do not end"):
        bl.jit(interpret=mode == "interpreted")(function)[1](np.zeros(1, np.int32), 3)
    ends = "@jit\ndef r(n, K: tl.constexpr):\n    return n if K == 0 else r(n * 2, K - 1)\n"
    function = define(f"{ends}\ndef kernel(out, n):\n    tl.store(out, r(n, 5))\n", "kernel")
    out = np.zeros(1, np.int32)
    bl.jit(interpret=mode == "interpreted")(function)[1](out, 3)
    assert out[0] == 96


# ---- arguments ----


@MODES
@types("value", [0, 1, 2, -1, 16, 100, np.int64(1), np.int8(1), np.int32(0)])
@row("The front end", "argument equal to 1, None, bool")
def test_an_argument_of_any_value_behaves_alike(value: Any, mode: str) -> None:
    """1, 0, a multiple of 16: specialised or not, it has every method of a run-time scalar and one meaning.

    A log explains each recompilation: `tests/jit/test_recompiles.py`."""
    out = launch(mode, kernels.as_argument, Out((12,), "int64"), value, BLOCK=8)
    s = int(value)
    branch = 100 if s == 1 else 200 if s else 300
    last = (s & 255) + (s << 1) + (s & 1) + ~s
    expected = [
        s,
        3 * s,
        s + 5,
        -s,
        int(s / 2),
        s if s > 0 else 7,
        28 * s,
        int(s * 0.5),
        4 * s,
        max(s, 0),
        branch,
    ]
    assert out[:11].tolist() == expected
    if s >= 0 and not isinstance(value, np.int8):
        assert out[11] == last


@MODES
@types("flag", [True, False, np.True_, np.False_])
@types("x", [1, 5])
@row("The front end", "argument equal to 1, None, bool")
def test_a_bool_is_a_run_time_scalar(flag: Any, x: int, mode: str) -> None:
    """True is no 1 and False no None: a branch, a choice, a cast and a store take them as what they are."""
    out = launch(mode, kernels.of_bool, Out((6,), "int32"), flag, x)
    assert out.tolist() == [int(flag), 10 if flag else 20, int(flag and x > 2), x if flag else -x, flag + 5,
                            2 if flag else 1]  # fmt: skip


@MODES
@row("The front end", "argument equal to 1, None, bool")
def test_none_is_known_when_the_kernel_is_compiled(mode: str) -> None:
    """An optional array: launches with and without it take turns, in any order."""
    x, bias = array([1, 2, 3]), array([10, 20, 30])
    for given in (None, bias, None, bias):
        out = np.zeros(3, np.int32)
        as_mode(kernels.of_none, mode)[1](x, given, out, 3, BLOCK=4)
        assert out.tolist() == (x if given is None else x + given).tolist()


# ---- printing ----


@MODES
@row("The front end", "printing")
def test_prints_go_through_sys_stdout_once_per_program(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole block, one line per element, programs ascending, wherever `sys.stdout` points at
    the launch."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    as_mode(kernels.printing, mode)[(3,)](array([4, 5, 6]), 3, BLOCK=4)
    monkeypatch.undo()
    lines = []
    for pid in range(3):
        at = f"pid ({pid}, 0, 0) idx"
        lines += [f"{at} ({i}) v: (operand 0) {v}" for i, v in enumerate((4, 5, 6, 0))]
        lines += [f"{at} () v: (operand 1) 3", f"{at} () n: 3"]
    assert shown.getvalue().splitlines() == lines


@MODES
@row("The front end", "printing")
def test_assertions_name_the_program_and_the_lane(mode: str) -> None:
    """With `debug=True` a failing lane stops its program and the launch says which; without nothing
    is checked."""
    x = array([1, 2, -3, 4])
    kernel = as_mode(kernels.asserting, mode)
    kernel[1](x, 4, BLOCK=8)
    assert x.tolist() == [2, 3, -2, 5]
    with pytest.raises(AssertionError, match="negative") as caught:
        kernel[1](x, 4, BLOCK=8, debug=True)
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "[2]" in said
    assert "front_end_kernels.py" in said
    assert x.tolist() == [2, 3, -2, 5]


@row("The front end", "printing")
def test_breakpoint_stops_on_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In interpreter mode the debugger stands in the kernel, once per program, and its variables
    can be read."""
    kernel = kernel_of("v = n + 1\nbreakpoint()\ntl.store(out, v)", "interpreted")
    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p v\ncontinue\n" * 2), stdout=shown, nosigint=True, readrc=False)
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    out = np.zeros(1, np.int32)
    kernel[(2,)](out, 4, N=3)
    monkeypatch.undo()
    assert out[0] == 5
    text = shown.getvalue()
    assert text.count("-> tl.store(out, v)") == 2
    assert "5" in text


# ---- errors ----

ERRORS: dict[str, tuple[str, str | None, list[str]]] = {
    "shapes": ("x = tl.arange(0, 4) + tl.arange(0, 5)", "tl.arange(0, 4) + tl.arange(0, 5)", ["4", "5"]),
    "types": ("x = tl.arange(0, 4) << 1.5", "tl.arange(0, 4) << 1.5", ["int"]),
    "store of a wide block": (
        "tl.store(out + tl.arange(0, 4), tl.arange(0, 8))",
        "tl.store(out + tl.arange(0, 4), tl.arange(0, 8))",
        ["4", "8"],
    ),
    "two types of a name": ("if n > 2:\n    y = 1\nelse:\n    y = 2.0\ntl.store(out, y)",
                            None, ["y", "i32", "f32"]),
    "an unknown name": ("tl.store(out, missing)", "missing", ["missing"]),
    "an unknown function": ("x = tl.lod(out)", "tl.lod", ["lod", "load"]),
    "a wrong keyword": ("x = tl.load(out, maks=n > 1)", None, ["maks"]),
    "too few arguments": ("x = tl.where(n > 1, n)", None, ["where"]),
    "a condition that is a block": ("if tl.arange(0, 4) > 2:\n    pass", "tl.arange(0, 4) > 2", ["scalar"]),
    "a loop that changes a type": ("x = 1\nfor i in range(n):\n    x = 2.0", None, ["x", "Loop-carried"]),
    "an extent at run time": ("x = tl.arange(0, n)", None, ["n"]),
    "a product of uneven matrices": (
        "x = tl.dot(tl.zeros((4, 8), tl.float32), tl.zeros((4, 8), tl.float32))", None, ["4", "8"],
    ),
    "a pointer of a block": ("x = tl.load(tl.arange(0, 4))", None, ["pointer"]),
    "a static assertion": ("tl.static_assert(N == 4, 'N is wrong')", None, ["N is wrong"]),
    "a wide character before the fault": ("'ä€'; x = tl.arange(0, 4) + tl.arange(0, 5)",
                                          "tl.arange(0, 4) + tl.arange(0, 5)", []),
}  # fmt: skip
INTERNAL = re.compile(
    r"\b(AttributeError|KeyError|NoneType|object at 0x|Traceback|blocklang\.(frontend|ir|ops|language)\.|"
    r"_[a-z]+_[a-z]+\(|ast\.[A-Z]|Tensor\b|self\.|SSA|region|terminator)"
)


@MODES
@types("name", ERRORS)
@row("The front end", "errors")
def test_errors_show_the_users_line_and_name_no_internals(name: str, mode: str) -> None:
    """File, line, caret under the construct, the types and shapes in question; and pickled it is the same."""
    body, underlined, words = ERRORS[name]
    error = refused(body, mode)
    text = str(error)
    assert error.location is not None
    assert f":{error.location.line}:" in text
    line = linecache.getline(error.location.file, error.location.line)
    assert line.strip() in text
    if underlined is not None:
        assert "^" * len(underlined) in text
        encoded = line.encode()
        assert encoded[error.location.column : error.location.end_column].decode() == underlined
    for word in words:
        assert word in text, word
    assert not INTERNAL.search(text), text


@MODES
@row("The front end", "errors")
def test_errors_in_a_helper_name_both_places(mode: str) -> None:
    """The line at fault in the function, and the line that called it."""
    helper = bl.jit(define("def helper(x):\n    return x << 1.5\n", "helper"))
    with pytest.raises(bl.CompilationError) as caught:
        kernel_of("y = n + 1\ntl.store(out, helper(y))", mode, helper=helper)[1](
            np.zeros(1, np.int32), 3, N=3
        )
    text = str(caught.value)
    assert "x << 1.5" in text
    assert "called at" in text
    assert "helper" in text

"""What is compared with Triton: one small kernel per case, as its users would write it.

A case is the body of a kernel between its loads and its store. The body sees blocks `a`, `b`, ... (one per
input), the constants `N` (the shape of the first input is `S0, S1, ...`) and leaves its result in `r`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = ("float8_e5m2", "float8_e4m3fn")
DTYPES = ("bool", *INTEGERS, *FLOATS)
TRITON_NAMES = {
    "bool": "int1",
    "float8_e5m2": "float8e5",
    "float8_e4m3fn": "float8e4nv",
}


def triton_name(dtype: str) -> str:
    """The name of a dtype below `tl`."""
    return TRITON_NAMES.get(dtype, dtype)


@dataclass(frozen=True)
class Input:
    """An array of a dtype and shape; `values` says which numbers it holds.

    Attributes:
        values: "any" (special values included), "nonzero" (the same, but 1 in place of 0), "small" (integers
            that floats hold exactly), "positive",
            "unit" (in [-1, 1]), or a Python expression of NumPy's `np` and `rng`.
    """

    dtype: str
    shape: tuple[int, ...] = (64,)
    values: str = "any"


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: also the name of the kernel; unique.
        body: lines of the kernel between loads and store.
        inputs: what is loaded into `a`, `b`, ...
        ulp: largest difference allowed, in units in the last place of the result's dtype; 0: the same bits.
        family: the heading in reports.
        shape: of the result, if it is not that of the first input.
    """

    name: str
    family: str
    body: str
    inputs: tuple[Input, ...]
    ulp: float = 0
    shape: tuple[int, ...] | None = None


BINARY = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "idiv": "a // b",
    "rem": "a % b",
    "and": "a & b",
    "or": "a | b",
    "xor": "a ^ b",
    "lt": "a < b",
    "ge": "a >= b",
    "eq": "a == b",
    "ne": "a != b",
    "minimum": "tl.minimum(a, b)",
    "maximum": "tl.maximum(a, b)",
    "where": "tl.where(a > b, a, b)",
}


COMPARED = ("bool", "int8", "int64", "uint32", "bfloat16", "float64")  # comparisons promote like sums


def binary() -> Iterator[Case]:
    for (op, text), left, right in itertools.product(BINARY.items(), DTYPES, DTYPES):
        if op in ("lt", "ge", "eq", "ne", "or", "xor") and not {left, right} <= set(COMPARED):
            continue
        # A quotient by zero is undefined there, and not here.
        divisor = Input(right, values="nonzero" if op in ("idiv", "rem") else "any")
        yield Case(f"{op}_{left}_{right}", "promotion", f"r = {text}", (Input(left), divisor))


def shifts() -> Iterator[Case]:
    for op, dtype in itertools.product(("<<", ">>"), INTEGERS):
        name = "shl" if op == "<<" else "shr"
        counts = Input(dtype, values="rng.integers(0, 7, 64)")
        yield Case(f"{name}_{dtype}", "shifts", f"r = a {op} b", (Input(dtype), counts))


LITERALS = ("2", "-1", "0.5", "300", "1e40", "2147483648", "4294967296", "True")


def literals() -> Iterator[Case]:
    for op, literal, dtype in itertools.product("+*/", LITERALS, DTYPES):
        name = {"+": "add", "*": "mul", "/": "div"}[op]
        label = literal.replace("-", "minus").replace(".", "_")
        for side, text in (("right", f"a {op} {literal}"), ("left", f"{literal} {op} a")):
            yield Case(f"{name}_{dtype}_{label}_{side}", "literals", f"r = {text}", (Input(dtype),))


def casts() -> Iterator[Case]:
    for source, target in itertools.product((*DTYPES, *FP8), repeat=2):
        in_range = "small" if source not in ("bool",) else "any"
        whole = source in FLOATS + FP8 and target in INTEGERS
        values = in_range if whole else "any"
        body = f"r = a.to(tl.{triton_name(target)})"
        yield Case(f"cast_{source}_{target}", "casts", body, (Input(source, values=values),))
    for source, target in (("float32", "float16"), ("float32", "bfloat16")):
        body = f"r = a.to(tl.{target}, fp_downcast_rounding='rtz')"
        yield Case(f"cast_rtz_{source}_{target}", "casts", body, (Input(source, values="small * 1.2345"),))
    for source, target in (("float32", "int32"), ("int16", "float16"), ("uint64", "float64")):
        body = f"r = a.to(tl.{target}, bitcast=True)"
        yield Case(f"bitcast_{source}_{target}", "casts", body, (Input(source),))


FUNCTIONS = {
    "exp": "unit * 80",
    "exp2": "unit * 120",
    "log": "positive",
    "log2": "positive",
    "sin": "unit * 100",
    "cos": "unit * 100",
    "sqrt": "positive",
    "rsqrt": "positive",
    "erf": "unit * 4",
    "floor": "unit * 100",
    "ceil": "unit * 100",
    "abs": "any",
    "sigmoid": "unit * 20",
}


def functions() -> Iterator[Case]:
    for (name, values), dtype in itertools.product(FUNCTIONS.items(), ("float32", "float64")):
        exact = name in ("floor", "ceil", "abs", "sqrt")
        yield Case(
            f"{name}_{dtype}",
            "functions",
            f"r = tl.{name}(a)",
            (Input(dtype, values=values),),
            0 if exact else 4,
        )
    yield Case(
        "softmax_float32", "functions", "r = tl.softmax(a)", (Input("float32", values="unit * 10"),), 16
    )
    three = tuple(Input("float32", values="unit") for _ in range(3))
    yield Case("fma_float32", "functions", "r = tl.fma(a, b, c)", three)
    yield Case("clamp_float32", "functions", "r = tl.clamp(a, -0.5, 0.5)", (Input("float32", values="unit"),))
    for dtype in ("int32", "uint32", "int64", "uint64"):
        yield Case(f"umulhi_{dtype}", "functions", "r = tl.umulhi(a, b)", (Input(dtype), Input(dtype)))
    for dtype in ("int32", "uint32"):
        body = "r = tl.cdiv(a, b)"
        yield Case(f"cdiv_{dtype}", "functions", body, (Input(dtype, values="rng.integers(0, 99, 64)"),) * 2)


def reductions() -> Iterator[Case]:
    shape = (8, 16)
    for name, axis, dtype in itertools.product(("sum", "max", "min", "argmax", "argmin"), (0, 1), DTYPES):
        if dtype == "bool" and name != "sum":
            continue
        extent = (shape[1 - axis],)
        values = "small" if name == "sum" and dtype != "bool" else "distinct"
        inputs = (Input(dtype, shape, values if dtype != "bool" else "any"),)
        yield Case(
            f"{name}_axis{axis}_{dtype}", "reductions", f"r = tl.{name}(a, {axis})", inputs, shape=extent
        )
    for name in ("max", "min"):
        body = f"v, i = tl.{name}(a, 1, return_indices=True)\nr = i"
        yield Case(f"{name}_indices", "reductions", body, (Input("float32", shape, "distinct"),), shape=(8,))
        body = f"r = tl.{name}(a, 1, keep_dims=True)"
        yield Case(
            f"{name}_keep_dims", "reductions", body, (Input("float32", shape, "distinct"),), shape=(8, 1)
        )
    for dtype in ("int32", "uint8", "int64"):
        yield Case(
            f"xor_sum_{dtype}", "reductions", "r = tl.xor_sum(a, 1)", (Input(dtype, shape),), shape=(8,)
        )
    yield Case("sum_all", "reductions", "r = tl.sum(a)", (Input("int32", shape, "small"),), shape=())


def scans() -> Iterator[Case]:
    shape = (8, 16)
    for axis, reverse, dtype in itertools.product(
        (0, 1), (False, True), ("int32", "int8", "float32", "bfloat16")
    ):
        body = f"r = tl.cumsum(a, {axis}, reverse={reverse})"
        yield Case(f"cumsum_axis{axis}_{reverse}_{dtype}", "scans", body, (Input(dtype, shape, "small"),))
    for axis in (0, 1):
        body = f"r = tl.cumprod(a, {axis})"
        yield Case(
            f"cumprod_axis{axis}", "scans", body, (Input("float32", shape, "rng.integers(1, 3, (8, 16))"),)
        )


def shapes() -> Iterator[Case]:
    wide = Input("int32", (4, 16))
    pair = (Input("float32", (4, 8)), Input("float32", (4, 8)))
    table = {
        "trans": ("r = tl.trans(a)", (wide,), (16, 4)),
        "T": ("r = a.T", (wide,), (16, 4)),
        "permute": ("r = tl.permute(a, (1, 0))", (wide,), (16, 4)),
        "reshape": ("r = tl.reshape(a, (16, 4))", (wide,), (16, 4)),
        "ravel": ("r = tl.ravel(a)", (wide,), (64,)),
        "expand": ("r = a[:, None, :]", (wide,), (4, 1, 16)),
        "join": ("r = tl.join(a, b)", pair, (4, 8, 2)),
        "interleave": ("r = tl.interleave(a, b)", pair, (4, 16)),
        "split": ("r, s = tl.split(tl.reshape(a, (4, 8, 2)))", (wide,), (4, 8)),
        "split_second": ("s, r = tl.split(tl.reshape(a, (4, 8, 2)))", (wide,), (4, 8)),
        "flip": ("r = tl.flip(a)", (Input("int32", (64,)),), (64,)),
        "flip_axis": ("r = tl.flip(a, 1)", (wide,), (4, 16)),
        "broadcast_to": (
            "r = tl.broadcast_to(tl.sum(a, 1, keep_dims=True), (8, 8))",
            (Input("float32", (8, 8), "small"),),
            (8, 8),
        ),
        "gather": (
            "r = tl.gather(a, b, 1)",
            (wide, Input("int32", (4, 16), "rng.integers(0, 16, (4, 16))")),
            (4, 16),
        ),
        "sort": ("r = tl.sort(a)", (Input("int32", (64,)),), (64,)),
        "sort_descending": ("r = tl.sort(a, descending=True)", (Input("float32", (4, 16), "unit"),), (4, 16)),
        "topk": ("r = tl.topk(a, 8)", (Input("int32", (64,)),), (8,)),
        "histogram": (
            "r = tl.histogram(a, 16)",
            (Input("int32", (64,), "rng.integers(0, 16, 64)"),),
            (16,),
        ),
    }
    for name, (body, inputs, shape) in table.items():
        yield Case(name, "shapes", body, inputs, shape=shape)


def products() -> Iterator[Case]:
    for dtype in ("float16", "bfloat16", "float32", "float64", "int8"):
        for m, k, n in ((16, 16, 16), (32, 64, 16)):
            inputs = (Input(dtype, (m, k), "small"), Input(dtype, (k, n), "small"))
            extra = ", out_dtype=tl.float64" if dtype == "float64" else ""
            body = f"r = tl.dot(a, b{extra})"
            yield Case(f"dot_{dtype}_{m}_{k}_{n}", "dot", body, inputs, shape=(m, n))
    inputs = (Input("float32", (4, 16, 16), "small"), Input("float32", (4, 16, 16), "small"))
    yield Case("dot_batched", "dot", "r = tl.dot(a, b)", inputs)


def random_numbers() -> Iterator[Case]:
    offsets = (Input("int32", (64,), "np.arange(64) * 7 - 3"),)
    wide = (Input("int64", (64,), "np.arange(64) * (1 << 33) + 5"),)
    for name in ("rand", "randint"):
        yield Case(f"{name}", "random", f"r = tl.{name}(1234, a)", offsets)
        yield Case(f"{name}_wide", "random", f"r = tl.{name}(1234567890123, a)", wide)
        for part in range(4):
            names = ", ".join(f"r{k}" for k in range(4))
            body = f"{names} = tl.{name}4x(99, a)\nr = r{part}"
            yield Case(f"{name}4x_{part}", "random", body, offsets)
    yield Case("randn", "random", "r = tl.randn(1234, a)", offsets, 64)


ALL: tuple[Case, ...] = tuple(
    itertools.chain(
        binary(),
        shifts(),
        literals(),
        casts(),
        functions(),
        reductions(),
        scans(),
        shapes(),
        products(),
        random_numbers(),
    )
)

_LETTERS = "abcdef"


def source_of(cases: tuple[Case, ...], triton: str, language: str) -> str:
    """The text of a module with one kernel per case, written for the given modules."""
    lines = [f"import {triton} as triton", f"import {language} as tl", "", ""]
    for case in cases:
        lines += _kernel(case)
    return "\n".join(lines)


DTYPE_CODES = (*DTYPES, *FP8)


def _kernel(case: Case) -> list[str]:
    pointers = [f"{letter}_ptr" for letter in _LETTERS[: len(case.inputs)]]
    lines = ["@triton.jit", f"def case_{case.name}(r_ptr, code_ptr, {', '.join(pointers)}):"]
    for letter, one in zip(_LETTERS, case.inputs, strict=False):
        lines.append(f"    {letter} = tl.load({letter}_ptr + {_offsets(one.shape)})")
    lines += [f"    {line}" for line in case.body.splitlines()]
    shape = case.inputs[0].shape if case.shape is None else case.shape
    lines.append(f"    tl.store(r_ptr + {_offsets(shape)}, r)" if shape else "    tl.store(r_ptr, r)")
    for code, dtype in enumerate(DTYPE_CODES):
        word = "elif" if code else "if"
        lines.append(f"    {word} r.dtype == tl.{triton_name(dtype)}:")
        lines.append(f"        tl.store(code_ptr, {code})")
    return [*lines, "", ""]


def _offsets(shape: tuple[int, ...]) -> str:
    terms, step = [], 1
    for axis in range(len(shape) - 1, -1, -1):
        index = ", ".join(":" if k == axis else "None" for k in range(len(shape)))
        lane = f"tl.arange(0, {shape[axis]})" + (f"[{index}]" if len(shape) > 1 else "")
        terms.append(lane if step == 1 else f"{lane} * {step}")
        step *= shape[axis]
    return " + ".join(reversed(terms))

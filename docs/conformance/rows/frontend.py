"""Section 4's hints and prints, and section 5: what the language of a kernel accepts and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from docs.conformance.kernels import Array, Kernel, Refuses
from docs.conformance.model import Row


def _same(x: Array) -> Array:
    return x


def _twice(x: Array) -> Array:
    return x + x


_HELPERS = """
from typing import NamedTuple

LIMIT: tl.constexpr = 3
CONSTANT = tl.constexpr(2)
PLAIN = 5

class Pair(NamedTuple):
    a: object
    b: object

@tl.core._aggregate
class Point:
    a: tl.tensor
    k: tl.constexpr

    @triton.constexpr_function
    def __init__(self, a, k):
        self.a = a
        self.k = tl.constexpr(k)

    @triton.jit
    def scaled(self, factor):
        return self.a * factor * self.k

@triton.constexpr_function
def half(n):
    return n // 2

@triton.jit
def double(a):
    return a * 2

@triton.jit
def power(a, n: tl.constexpr):
    if n == 0:
        return a * 0 + 1
    else:
        return a * power(a, n - 1)

@triton.jit
def scaled(a, factor=2.0, shift: tl.constexpr = 0):
    return a * factor + shift

@triton.jit
def nothing(a):
    return

@triton.jit
def early(a):
    if a > 10.0:
        return a * 2
    return a

@triton.jit
def apply(fn: tl.constexpr, a):
    return fn(a)

@triton.jit(noinline=True)
def alone(a):
    return a * 2

@triton.jit
def choose(flag: tl.constexpr):
    if flag:
        return 1
    else:
        return 2
"""

# Hints: name, code; what comes out is what went in.
_HINTS = {
    "multiple_of(input, values)": "r = tl.load(X + tl.multiple_of(i, 8))",
    "multiple_of(values of a list)": "r = tl.load(X + tl.multiple_of(i, [8]))",
    "max_contiguous(input, values)": "r = tl.load(X + tl.max_contiguous(i, 8))",
    "max_constancy(input, values)": "r = tl.max_constancy(x, 1)",
    "assume(cond)": "tl.assume(tl.program_id(0) >= 0)\nr = x",
    "debug_barrier()": "tl.debug_barrier()\nr = x",
    "device_print(prefix, *args)": "tl.device_print('x: ', x)\nr = x",
    "device_print(hex)": "tl.device_print('i: ', i, hex=True)\nr = x",
    "device_print of nothing": "tl.device_print('here')\nr = x",
    "print": "print('x: ', x)\nr = x",
    "device_assert(cond)": "tl.device_assert(x > -1)\nr = x",
    "device_assert(msg)": "tl.device_assert(x > -1, 'positive')\nr = x",
    "device_assert(mask)": "tl.device_assert(x > 5, 'big', mask=i < 0)\nr = x",
    "assert": "assert N > 1, 'blocks'\nr = x",
    "static_print(*values)": "tl.static_print('N', N)\nr = x",
    "static_print(sep, end)": "tl.static_print('N', N, sep=' ', end='')\nr = x",
    "static_print(file, flush)": "tl.static_print('N', file=None, flush=True)\nr = x",
    "static_assert(cond)": "tl.static_assert(N > 1)\nr = x",
    "static_assert(msg)": "tl.static_assert(N > 1, 'too few')\nr = x",
    "target_info.is_cuda()": "r = x\nif tl.target_info.is_cuda():\n    r = no_such_name",
    "target_info.is_hip()": "r = x\nif tl.target_info.is_hip():\n    r = no_such_name",
    "target_info.is_hip_cdna3()": "r = x\nif tl.target_info.is_hip_cdna3():\n    r = no_such_name",
    "target_info.is_hip_cdna4()": "r = x\nif tl.target_info.is_hip_cdna4():\n    r = no_such_name",
    "target_info.cuda_capability_geq(major, minor)": "r = x\nif tl.target_info.cuda_capability_geq(8, 0):\n"
    "    r = no_such_name",
    "target_info.current_target()": "r = x",
    "extra.cuda.num_threads()": "r = x\nif tl.extra.cuda.num_threads() < 1:\n    r = x * 0",
    "extra.cuda.num_warps()": "r = x\nif tl.extra.cuda.num_warps() < 1:\n    r = x * 0",
    "extra.cuda.globaltimer()": "t = tl.extra.cuda.globaltimer()\nr = x + (t < 0)",
    "extra.cuda.smid()": "s = tl.extra.cuda.smid()\nr = x + (s < 0)",
    "extra.cuda.gdc_wait()": "tl.extra.cuda.gdc_wait()\nr = x",
    "extra.cuda.gdc_launch_dependents()": "tl.extra.cuda.gdc_launch_dependents()\nr = x",
    "core.extern_elementwise": "r = tl.core.extern_elementwise('', '', [x], {(tl.float32,): ('__nv_fabsf', "
    "tl.float32)}, is_pure=True)",
}

_ACCEPTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "assignment": ("r = x", _same),
    "tuple unpacking": ("r, q = x, i", _same),
    "nested tuple unpacking": ("(r, q), k = (x, i), 1", _same),
    "augmented assignment": ("r = x\nr += x", _twice),
    "x: tl.constexpr = ...": ("k: tl.constexpr = 2\nr = x * k", _twice),
    "if": ("r = x\nif tl.program_id(0) >= 0:\n    r = x * 2", _twice),
    "if, elif, else": (
        "if tl.program_id(0) > 9:\n    r = x\nelif tl.program_id(0) > 8:\n    r = x\nelse:\n    r = x * 2",
        _twice,
    ),
    "ternary": ("r = x * 2 if N > 1 else x", _twice),
    "ternary of a run-time condition": ("k = 2.0 if tl.program_id(0) >= 0 else 1.0\nr = x * k", _twice),
    "for over range": ("r = x * 0\nfor k in range(2):\n    r += x", _twice),
    "for over range(start, end, step)": ("r = x * 0\nfor k in range(4, 0, -2):\n    r += x", _twice),
    "for over tl.range": ("r = x * 0\nfor k in tl.range(0, 2):\n    r += x", _twice),
    **{
        f"tl.range({name})": (f"r = x * 0\nfor k in tl.range(0, 2, 1, {name}={value}):\n    r += x", _twice)
        for name, value in (
            ("num_stages", 2),
            ("loop_unroll_factor", 2),
            ("disallow_acc_multi_buffer", True),
            ("flatten", True),
            ("warp_specialize", False),
            ("disable_licm", True),
        )
    },
    "tl.static_range": ("r = x * 0\nfor k in tl.static_range(2):\n    r += x", _twice),
    "the index of static_range is constexpr": (
        "r = x\nfor k in tl.static_range(3):\n    if k == 2:\n        r += x",
        _twice,
    ),
    "while": ("r = x * 0\nk = 0\nwhile k < 2:\n    r += x\n    k += 1", _twice),
    "tl.condition": ("r = x * 0\nk = 0\nwhile tl.condition(k < 2):\n    r += x\n    k += 1", _twice),
    "tl.condition(disable_licm)": (
        "r = x * 0\nk = 0\nwhile tl.condition(k < 2, disable_licm=True):\n    r += x\n    k += 1",
        _twice,
    ),
    "a loop of no trips": ("r = x\nfor k in range(0, tl.program_id(0) * 0):\n    r = x * 3", _same),
    "an index changed in the loop": ("r = x * 0\nfor k in range(2):\n    r += x\n    k += 5", _twice),
    "int64 bounds give an int64 index": (
        "r = x * 0\nfor k in range(tl.program_id(0).to(tl.int64) * 0, 2):\n"
        "    tl.static_assert(k.dtype == tl.int64)\n    r += x",
        _twice,
    ),
    "pass": ("pass\nr = x", _same),
    "return": ("r = double(x)", _twice),
    "f-strings of constexprs": ("tl.static_assert(N > 1, f'{N} lanes')\nr = x", _same),
    "list literals": ("t = [x, i]\nr = t[0]", _same),
    "list comprehension": ("t = [v * 2 for v in (x, x)]\nr = t[1]", _twice),
    "*tuple in calls": ("t = (x, 2.0)\nr = scaled(*t)", _twice),
    "keywords": ("r = scaled(factor=2.0, a=x)", _twice),
    "default arguments": ("r = scaled(x)", _twice),
    "recursion over constexprs": ("r = power(x, 2)", lambda x: x * x),
    "functions as arguments": ("r = apply(double, x)", _twice),
    "functions in tuples": ("fs = (double, double)\nr = fs[1](x)", _twice),
    "noinline": ("r = alone(x)", _twice),
    "a return without a value is None": ("k = nothing(x)\nr = x\nif k is not None:\n    r = x * 3", _same),
    "return inside a run-time if": ("r = x + early(tl.load(X)) * 0", _same),
    "constexpr globals": ("r = x * CONSTANT", _twice),
    "a dead branch is not visited": ("r = x\nif N == 1:\n    r = x + no_such_name.attribute", _same),
    "different constexprs returned under a constexpr": ("r = x * choose(False)", _twice),
    "namedtuple": ("p = Pair(x, i)\nr = p.a", _same),
    "tuple +": ("t = (i,) + (x,)\nr = t[1]", _same),
    "tuple *": ("t = (x,) * 2\nr = t[0] + t[1]", _twice),
    "tuple ==": ("r = x\nif (1, 2) == (1, 2):\n    r = x * 2", _twice),
    "tuple slices": ("t = (i, x, x)[1:]\nr = t[0]", _same),
    "iteration by static_range(len)": (
        "t = (x, x)\nr = x * 0\nfor k in tl.static_range(len(t)):\n    r += t[k]",
        _twice,
    ),
    "tuple arguments": ("r = x * T[0] * T[1]", _twice),
    "nested tuple arguments": ("r = x * T[2][0]", _twice),
    "constexpr leaves of tuple arguments": ("r = x\nif T[1] == 1:\n    r = x * 2", _twice),
    "_aggregate": ("p = Point(x, 2)\nr = p.a * p.k", _twice),
    "methods of aggregates": ("p = Point(x, 2)\nr = p.scaled(1.0)", _twice),
    "bound methods of aggregates as values": ("p = Point(x, 2)\nf = p.scaled\nr = f(1.0)", _twice),
    "constexpr_function": ("r = x * half(4)", _twice),
    "len": ("r = x\nif len((1, 2)) == 2:\n    r = x * 2", _twice),
    "list": ("t = list((x, i))\nr = t[0]", _same),
    "range": ("r = x\nfor k in range(0):\n    r = x * 3", _same),
    "float": ("k: tl.constexpr = float('inf')\nr = tl.minimum(x, k)", _same),
    "int": ("k: tl.constexpr = int(2.5)\nr = x * k", _twice),
    "isinstance": ("r = x\nif isinstance(N, tl.constexpr):\n    r = x * 2", lambda x: x * 2),
    "getattr": ("r = x\nif getattr(x, 'dtype') == tl.float32:\n    r = x * 2", _twice),
    "hasattr": ("r = x\nif hasattr(x, 'no_such_name'):\n    r = x * 3", _same),
    "min of blocks": ("r = min(x, x * 3)", _same),
    "max of blocks": ("r = max(x, x * 2)", _twice),
    "min and max of constexprs": ("k: tl.constexpr = max(min(N, 2), 1, 0)\nr = x * k", _twice),
    "x.to on an argument": ("r = x * K.to(tl.float32)", _twice),
}

_REFUSED = {
    "several targets": ("r = q = x", "(?i)target|assign"),
    "lambda": ("f = lambda a: a\nr = f(x)", "(?i)lambda"),
    "nested def": ("def f(a):\n    return a\nr = f(x)", "(?i)nested|function|def"),
    "break": ("r = x\nfor k in range(2):\n    break", "(?i)break"),
    "continue": ("r = x\nfor k in range(2):\n    continue", "(?i)continue"),
    "try": ("try:\n    r = x\nexcept ValueError:\n    r = x", "(?i)try"),
    "raise": ("raise ValueError\nr = x", "(?i)raise"),
    "dict": ("d = {}\nr = x", "(?i)dict"),
    "global": ("global q\nr = x", "(?i)global"),
    "for-else": ("for k in range(2):\n    r = x\nelse:\n    r = x", "(?i)else"),
    "while-else": ("k = 0\nwhile k < 1:\n    k += 1\nelse:\n    r = x\nr = x", "(?i)else"),
    "attribute assignment": ("x.name = 1\nr = x", "(?i)attribute|assign"),
    "item assignment": ("t = (x, i)\nt[0] = i\nr = x", "(?i)item|assign|subscript"),
    "with of another object": ("with open('x'):\n    r = x", "(?i)open|with"),
    "a global that is no constexpr": ("r = x * PLAIN", "(?i)constexpr|global"),
    "a global that is only annotated constexpr": ("r = x * LIMIT", "(?i)constexpr|global"),
    "a name that nobody defined": ("r = x * no_such_name", "(?i)not defined|no_such_name"),
    "a name of one branch only": ("if tl.program_id(0) > 0:\n    q = x\nr = q", "(?i)q"),
    "types that differ between branches": (
        "if tl.program_id(0) > 0:\n    r = x\nelse:\n    r = i",
        "(?i)type|mismatch",
    ),
    "a loop-carried type that changes": (
        "r = i\nfor k in range(2):\n    r = r * 1.5",
        "(?i)loop-carried|type",
    ),
    "a constexpr changed in a loop": (
        "k: tl.constexpr = 1\nr = x\nfor j in range(2):\n    k = k + 1\n    r = x * k",
        "(?i)constexpr|loop",
    ),
    "a block as a condition": ("r = x\nif x > 1:\n    r = x * 2", "(?i)condition|block|scalar"),
    "return inside a loop's if": (
        "r = x\nfor k in range(2):\n    if tl.program_id(0) > 3:\n        return\n",
        "(?i)return",
    ),
    "returns of different types": ("r = wrong(x, tl.program_id(0))", "(?i)return|type"),
    "static_assert that fails": ("tl.static_assert(N < 0, 'too many')\nr = x", "too many"),
    "a constexpr assigned again": ("k: tl.constexpr = 1\nk: tl.constexpr = 2\nr = x", "(?i)constexpr"),
    "a call of another function": ("r = sorted(x)", "(?i)sorted"),
    "a hint's list of another length": (
        "r = tl.load(X + tl.multiple_of(i, [8, 8]))",
        "(?i)rank|length|dimension|per axis",
    ),
}
_WRONG = """
@triton.jit
def wrong(a, k):
    if k > 0:
        return a
    else:
        return k
"""


def _rows() -> list[Row]:
    rows = [Row("Hints, prints and target", n, Kernel(code, wanted=_same)) for n, code in _HINTS.items()]
    for name, (code, wanted) in _ACCEPTED.items():
        arguments = ""
        values: tuple[Any, ...] = ()
        if "T[" in code:
            arguments, values = "T", ((2, 1, (2.0, np.ones(1, np.float32))),)
        elif "K." in code:
            arguments, values = "K", (2,)
        rows.append(
            Row(
                "Frontend: accepted",
                name,
                Kernel(code, wanted=wanted, prelude=_HELPERS, arguments=arguments, values=values),
            )
        )
    for name, (code, message) in _REFUSED.items():
        kernel = Kernel(code, prelude=_HELPERS + _WRONG)
        rows.append(Row("Frontend: refused, as in Triton", name, Refuses(kernel, message)))
    return rows


ROWS = _rows()

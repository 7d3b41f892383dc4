"""The rules of the language's frontend as small kernels, each with what it must store.

A kernel stores int32 values through `out`; `n` is the run-time integer 4, `one` is 1, `N` is the constexpr 3.
"""

from __future__ import annotations

from dataclasses import dataclass

HELPERS = """
class P(NamedTuple):
    x: object
    y: object

class Colour(enum.IntEnum):
    RED = 3
    BLUE = 4

WIDTH = 7
FIXED = tl.constexpr(5)
LIST = [4, 5]

@jit
def add(a, b):
    return a + b

@jit
def twice(a):
    return add(a, a)

@jit
def apply(function, *, value):
    return function(value)

@jit
def pair(a, b=20, c=9):
    return a, (b, c)

@jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    return n * factorial(n - 1)

@jit
def spread(p, lanes: tl.constexpr, size: tl.constexpr):
    tl.store(p + lanes, tl.arange(0, size) + lanes)

@jit
def store_one(p):
    tl.store(p, 1)

@jit
def early(n):
    for i in range(n):
        if i == 3:
            return i
    return 9

@jit(noinline=True)
def apart(a):
    return a + 1

@constexpr_function
def half(a):
    return a // 2

@constexpr_function
def split_in_two(a):
    return a // 2, a - a // 2

@aggregate
class Complex:
    re: tl.tensor
    im: tl.tensor

    def __init__(self, re, im):
        self.re = re
        self.im = im

    @jit
    def times(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    @constexpr_function
    def rank(self):
        return 0

@aggregate
class Sized:
    value: tl.tensor
    size: tl.constexpr
    inner: Complex

    @constexpr_function
    def __init__(self, value, size, inner):
        self.value = value
        self.size = size
        self.inner = inner

    @jit
    def total(self):
        s = self.value
        for i in tl.static_range(self.size):
            s += i
        return s + self.inner.re
"""


@dataclass(frozen=True)
class Rule:
    """A kernel's body, and the first values that it stores."""

    name: str
    body: str
    stored: tuple[int, ...]


def _rules(text: str) -> tuple[Rule, ...]:
    """Rules out of a text: `# name -> values`, then the lines of the body."""
    found = []
    for block in text.strip().split("\n# ")[0:]:
        head, _, body = block.removeprefix("# ").partition("\n")
        name, _, values = head.partition(" -> ")
        found.append(Rule(name.strip(), body.rstrip() + "\n", tuple(map(int, values.split()))))
    return tuple(found)


RULES = _rules("""
# nested unpacking -> 1 2 3 4
(a, (b, c)), d = (1, (2, 3)), 4
tl.store(out, a)
tl.store(out + 1, b)
tl.store(out + 2, c)
tl.store(out + 3, d)
# tuples are added and repeated -> 3 6 2 3
t = (1, 2) + (3,)
u = t * 2
tl.store(out, u[5])
tl.store(out + 1, len(u))
tl.store(out + 2, u[1:3][0])
tl.store(out + 3, u[-1])
# a tuple of run-time values is compared item by item -> 1 2 3 4
t = (n, 2)
if t == (4, 2):
    tl.store(out, 1)
if t != (4, 3):
    tl.store(out + 1, 2)
if not t == (4,):
    tl.store(out + 2, 3)
if (n, (n, 1)) == (4, (4, 1)):
    tl.store(out + 3, 4)
# tuples known at compile time are compared at once -> 1 2
if (1, 2) < (1, 3):
    tl.store(out, 1)
if (N, None) == (3, None):
    tl.store(out + 1, 2)
else:
    tl.store(out + 1, undefined)
# iteration over a tuple -> 15 15
t = (4, 5, 6)
s = 0
for i in tl.static_range(len(t)):
    s += t[i]
tl.store(out, s)
s = 0
for v in t:
    s += v
tl.store(out + 1, s)
# a loop carries a tuple and a namedtuple -> 5 8 8
t = (0, 1)
p = P(0, (0, 1))
for i in range(n + 1):
    t = (t[1], t[0] + t[1])
    p = P(i, (p.y[1], p.y[0] + p.y[1]))
tl.store(out, t[0])
tl.store(out + 1, t[1])
tl.store(out + 2, p.y[1])
# an if carries a namedtuple -> 5 7
t = P(0, (1, 2))
if n > 3:
    t = P(5, (6, 7))
tl.store(out, t.x)
tl.store(out + 1, t.y[1])
# a choice between tuples -> 1 2 5
t = P(1, 2) if n > 3 else P(3, 4)
tl.store(out, t.x)
tl.store(out + 1, t.y)
u = (n, (1, None)) if n > 5 else (n + 1, (2, None))
tl.store(out + 2, u[0])
# a choice between calls without a value -> 1 1
store_one(out) if n > 2 else store_one(out + 2)
x = store_one(out + 1) if N == 3 else undefined
# a tuple spread in a call -> 12 34
t = (1, 11)
tl.store(out, add(*t))
tl.store(out + 1, add(*(30, 4)))
# lists are tuples -> 3 2 6 2
t = [1, 2]
a, b = t
tl.store(out, a + b)
tl.store(out + 1, len(t))
u = [v * 2 for v in (1, 2, 3)]
tl.store(out + 2, u[2])
tl.store(out + 3, [i for i in tl.static_range(3) if i != 1][1])
# generator expressions -> 6 3 4
tl.store(out, tuple(v * 2 for v in (1, 2, 3))[2])
tl.store(out + 1, sum(v for v in (1, 2)))
tl.store(out + 2, max(v for v in (1, n)))
# functions are values -> 8 8 8 5
tl.store(out, apply(twice, value=n))
fs = (twice, add)
tl.store(out + 1, fs[0](n))
f = twice
tl.store(out + 2, f(n))
tl.store(out + 3, apart(n))
# lambdas and inner functions see the names around them -> 7 9 6 6
c = 3
f = lambda x: x + c
def g(x, scale=2):
    return f(x) + scale
def combine(a, b):
    return a + b
tl.store(out, f(n))
tl.store(out + 1, g(n))
x = tl.arange(0, 4)
tl.store(out + 2, tl.reduce(x, 0, combine))
tl.store(out + 3, tl.reduce(x, 0, lambda a, b: a + b))
# results are tuples, arguments have names and defaults -> 4 20 9 1
a, (b, c) = pair(n)
tl.store(out, a)
tl.store(out + 1, b)
tl.store(out + 2, c)
tl.store(out + 3, pair(n, c=1)[1][1])
# recursion over constexprs -> 120
tl.store(out, factorial(5))
# a bound method is a value -> 4
f = n.to
tl.store(out, f(tl.int32))
# constexpr functions run in Python -> 1 3 4
tl.store(out, half(N))
a, b = split_in_two(7)
tl.store(out + 1, a)
HALF: tl.constexpr = half(8)
tl.store(out + 2, tl.arange(0, HALF).numel)
# an aggregate is built and asked -> -3 4 0 1
z = Complex(1, 2)
w = z.times(z)
tl.store(out, w.re)
tl.store(out + 1, w.im)
tl.store(out + 2, z.rank())
tl.store(out + 3, 1 if isinstance(z, Complex) else 0)
# an aggregate is carried -> -4 0 -3 4
z = Complex(1, 1)
for i in range(3):
    z = z.times(Complex(1, 1))
tl.store(out, z.re)
tl.store(out + 1, z.im)
if n > 3:
    z = Complex(1, 2)
    z = z.times(z)
tl.store(out + 2, z.re)
tl.store(out + 3, z.im)
# an aggregate in an aggregate -> 11 8 3
s = Sized(n, N, Complex(4, 0))
tl.store(out, s.total())
f = s.inner.times
tl.store(out + 1, f(Complex(2, 0)).re)
tl.store(out + 2, s.size)
# an unrolled round may declare a constexpr again -> 0 2 4
for i in tl.static_range(3):
    TWICE: tl.constexpr = 2 * i
    tl.store(out + i, TWICE)
# a plain assignment makes a run-time value of a constexpr -> 4
M: tl.constexpr = 3
M += 1
tl.store(out, M)
# augmented assignment of a tuple -> 2
t = (1,)
t += (2,)
tl.store(out, t[1])
# one value for several targets -> 6
a = b = 3
tl.store(out, a + b)
# what follows a constexpr branch that returned does not exist -> 3
if N == 3:
    tl.store(out, 3)
    return
tl.store(out, undefined)
# a return in a loop of a function -> 3
tl.store(out, early(n + 1))
# for with else -> 6 3
s = 0
for i in range(n):
    if i == 7:
        break
    s += i
else:
    tl.store(out, s)
for i in range(n):
    if i == 3:
        break
else:
    i = 100
tl.store(out + 1, 3)
# while with else -> 106 4
s = 0
while s <= n:
    s += 2
else:
    s += 100
tl.store(out, s)
s = 0
while s <= n:
    s += 2
    if s == 4:
        break
else:
    s += 100
tl.store(out + 1, s)
# run-time steps of either sign, and none -> 951 2 0
s = 0
for i in range(9, 0, -n):
    s = s * 10 + i
tl.store(out, s)
s = 0
for i in range(0, 8, n):
    s += 1
tl.store(out + 1, s)
s = 0
for i in range(0, 8, n - 4):
    s += 1
tl.store(out + 2, s)
# changing the index changes no round -> 6
s = 0
for i in range(4):
    s += i
    i = 10
tl.store(out, s)
# the index has the type of the bounds -> 2 2
s = 0
for i in range(tl.full((), 3, tl.int64), 5):
    tl.static_assert(i.dtype == tl.int64)
    s += 1
tl.store(out, s)
s = 0
for i in range(tl.full((), 3, tl.int8), tl.full((), 5, tl.int8)):
    tl.static_assert(i.dtype == tl.int32)
    s += 1
tl.store(out + 1, s)
# tl.range takes hints -> 6 10
s = 0
for i in tl.range(0, n + 1, 2, num_stages=2, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
    s += i
for i in tl.range(0, 0, flatten=True, warp_specialize=False, disable_licm=True):
    s += i
tl.store(out, s)
s = 0
for i in tl.range(n + 1):
    s += i
tl.store(out + 1, s)
# static_range counts down -> 531
s = 0
for i in tl.static_range(5, 0, -2):
    s = s * 10 + i
tl.store(out, s)
# tl.condition -> 6
s = 0
while tl.condition(s <= n, disable_licm=True):
    s += 2
tl.store(out, s)
# chained comparison, each side once -> 1
if 0 < n < 5 < 9:
    tl.store(out, 1)
# and, or, not on scalars -> 2 4 7 0
if n > 5 and tl.load(out + 1000000 * n) > 0:
    tl.store(out, 1)
else:
    tl.store(out, 2)
tl.store(out + 1, n or 7)
tl.store(out + 2, n and 7)
tl.store(out + 3, (not n).to(tl.int32))
# is, and None -> 1 2 3
x = None
if x is None:
    tl.store(out, 1)
if n is not None:
    tl.store(out + 1, 2)
if n != None and x == None:
    tl.store(out + 2, 3)
# in, on compile-time values -> 1 2 3
if N in (1, 3):
    tl.store(out, 1)
if N not in (2,):
    tl.store(out + 1, 2)
if 'b' in 'abc':
    tl.store(out + 2, 3)
# powers of constexprs -> 8 9
tl.store(out, 2 ** N)
tl.store(out + 1, N ** 2)
# f-strings of constexprs -> 1 2
name: tl.constexpr = f"a{N:02d}{'b'!r}"
if name == "a03'b'":
    tl.store(out, 1)
if f"{(1, 2)}" == "(1, 2)":
    tl.store(out + 1, 2)
# statements that do nothing -> 1
'''a docstring'''
...
pass
x: tl.int32
tl.store(out, 1)
# Python's functions -> 2 3 2 7 4 5
tl.store(out, len((1, 2)))
tl.store(out + 1, int(3.7))
tl.store(out + 2, min(3, n, 2))
tl.store(out + 3, max(n, 7))
tl.store(out + 4, abs(-n))
tl.store(out + 5, sum((1, n)))
# isinstance -> 1 1 1 1 0
tl.store(out, 1 if isinstance(n, tl.tensor) else 0)
tl.store(out + 1, 1 if isinstance(N, tl.constexpr) else 0)
tl.store(out + 2, 1 if isinstance((1, 2), tl.tuple) else 0)
tl.store(out + 3, 1 if isinstance(N, (int, float)) else 0)
tl.store(out + 4, 1 if isinstance(n, int) else 0)
# getattr and hasattr -> 5 1 0 9
t = P(5, 6)
tl.store(out, getattr(t, 'x'))
tl.store(out + 1, 1 if hasattr(t, 'y') else 0)
tl.store(out + 2, 1 if hasattr(t, 'z') else 0)
tl.store(out + 3, getattr(t, 'z', 9))
# zip and enumerate over tuples -> 11 6
s = 0
for a, b in zip((1, 2), (3, 4)):
    s += a * b
tl.store(out, s)
s = 0
for i, a in enumerate((5, 6)):
    s += i * a
tl.store(out + 1, s)
# list and tuple of a range -> 2 1
tl.store(out, list(range(3))[2])
tl.store(out + 1, tuple([1, 2])[0])
# the smallest of constexprs is one -> 1 1 1
WIDTH_: tl.constexpr = min(N, 8)
tl.store(out + tl.arange(0, WIDTH_), 1)
# Python's math at compile time -> 4 4 3 2
x: tl.constexpr = math.sqrt(N + 13)
tl.store(out, int(x))
y: tl.constexpr = math.ceil(math.log2(N * 5))
tl.store(out + 1, y)
tl.store(out + 2, int(math.pi))
z: tl.constexpr = int(np.log2(N + 1))
tl.store(out + 3, z)
# members of an enumeration -> 3 4 1 4 5
tl.store(out, Colour.RED)
tl.store(out + 1, Colour.BLUE.value)
if Colour(4) is Colour.BLUE:
    tl.store(out + 2, 1)
tl.store(out + 3, Colour.RED + 1)
tl.store(out + 4, n + 1 if N == Colour.RED else 0)
# dtypes are values -> 16 10 15 8 2
D: tl.constexpr = tl.float16
x = tl.zeros((2,), D)
tl.store(out, x.dtype.primitive_bitwidth)
tl.store(out + 1, D.fp_mantissa_width)
tl.store(out + 2, D.exponent_bias)
tl.store(out + 3, tl.int8.int_bitwidth)
tl.store(out + 4, x.type.get_block_shapes()[0])
if not (x.type.is_block() and x.type.scalar == tl.float16 and D.name == 'fp16' and out.dtype.is_ptr()):
    tl.static_assert(False)
# globals -> 7 5 5
tl.store(out, WIDTH)
tl.store(out + 1, FIXED)
tl.store(out + 2, LIST[1])
# an argument of value 1 is a run-time value -> 2 1
tl.store(out, one + 1)
tl.store(out + 1, one.to(tl.int32))
tl.static_assert((tl.full((4,), 3, tl.int8) + one).dtype == tl.int32)
# a parameter that is annotated constexpr takes a block all the same -> 9 1 3 5
tl.store(out, 9)
spread(out, tl.arange(0, 3) + 1, 3)
""")

"""Fused multiply-adds, `a * b + c` rounded once: an instruction, or an exact sequence of vector operations.

Without the instruction, LLVM would call the C library for every lane. Here the sum is computed exactly, as
two floats of which the lesser is rounded to odd: an inexact one becomes the one of its two neighbours whose
last bit is 1, so that nothing is lost for the rounding that follows. (S. Boldo and G. Melquiond, "Emulation
of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers
57(4), 2008; T. J. Dekker, "A floating-point technique for extending the available precision", Numerische
Mathematik 18, 1971, for the error of a product.) `blocklang.interpreter.exact` says the same in NumPy.

f32 goes through f64, where the product is exact, in some twenty instructions. f64 takes seventy, and as many
again for operands near the ends of the range, so it is a function of the module, which takes a few lanes:
kernels with mathematical functions hold hundreds of them.
"""

from __future__ import annotations

from blocklang.codegen.context import Context
from blocklang.codegen.emitter import Emitter
from blocklang.ir.types import F32, F64, I64, ScalarType

_PIECE = 4  # lanes of f64 in one call: six registers of operands, all that the calling convention has but two
_FRACTION, _BIAS = 52, 1023
_SIGN_AND_FRACTION = -1 - (0x7FF << _FRACTION)
_LIFT = 54  # 2^54 makes every subnormal normal
_SPLIT = 2.0**27 + 1


def fused_multiply_add(c: Context, type: ScalarType, a: str, b: str, addend: str) -> str:
    """a * b + addend of f32 or f64 lanes with one rounding, for every input."""
    if c.target.has_fma:
        return c.intrinsic("fma", type, a, b, addend)
    if type == F64:
        return _in_pieces(c, a, b, addend)
    double = c.type(F64)
    x, y, z = (c.emit.op(f"fpext {c.type(F32)} {v} to {double}") for v in (a, b, addend))
    total = _Doubles(c).add_to_odd(c.emit.op(f"fmul {double} {x}, {y}"), z)
    return c.emit.op(f"fptrunc {double} {total} to {c.type(F32)}")


def _in_pieces(c: Context, a: str, b: str, addend: str) -> str:
    """Calls of the module's own function for a few lanes each."""
    is_cut = c.width > _PIECE and c.width & (c.width - 1) == 0
    width = _PIECE if is_cut else c.width
    piece = Context(c.emit, c.target, width)
    name, kind, whole = _function(piece), piece.type(F64), c.type(F64)

    def call(operands: list[str]) -> str:
        return c.emit.op(f"call {kind} @{name}({', '.join(f'{kind} {v}' for v in operands)})")

    if not is_cut:
        return call([a, b, addend])
    parts = []
    for start in range(0, c.width, width):
        lanes = _lanes(range(start, start + width))
        parts.append(
            call([c.emit.op(f"shufflevector {whole} {v}, {whole} poison, {lanes}") for v in (a, b, addend)])
        )
    while len(parts) > 1:
        kind, lanes = f"<{width} x double>", _lanes(range(2 * width))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [c.emit.op(f"shufflevector {kind} {x}, {kind} {y}, {lanes}") for x, y in pairs]
        width *= 2
    return parts[0]


def _lanes(lanes: range) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _function(piece: Context) -> str:
    """The name of the module's function for that many lanes of f64."""
    emit = Emitter()
    emit.declarations = piece.emit.declarations
    emit.start("entry")
    inside = Context(emit, piece.target, piece.width)
    emit.do(f"ret {inside.type(F64)} {_Fma(inside, '%a', '%b', '%c').result()}")
    kind = inside.type(F64)
    return piece.emit.function(f"{kind} %a, {kind} %b, {kind} %c", emit.lines, result=kind)


class _Doubles:
    """Exact arithmetic on lanes of f64."""

    def __init__(self, c: Context) -> None:
        self.c = c
        self.double, self.word, self.mask = c.type(F64), c.type(I64), c.mask_type

    def op(self, text: str) -> str:
        return self.c.emit.op(text)

    def number(self, value: float) -> str:
        return self.c.number(F64, value)

    def real(self, opcode: str, a: str, b: str) -> str:
        return self.op(f"{opcode} {self.double} {a}, {b}")

    def compare(self, order: str, a: str, b: str | float) -> str:
        text = b if isinstance(b, str) else self.number(b)
        return self.op(f"fcmp {order} {self.double} {a}, {text}")

    def integer(self, opcode: str, a: str, b: str | int) -> str:
        text = b if isinstance(b, str) else self.c.number(I64, b)
        return self.op(f"{opcode} {self.word} {a}, {text}")

    def both(self, a: str, b: str) -> str:
        return self.op(f"and {self.mask} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.op(f"or {self.mask} {a}, {b}")

    def bits(self, value: str) -> str:
        return self.op(f"bitcast {self.double} {value} to {self.word}")

    def from_bits(self, bits: str) -> str:
        return self.op(f"bitcast {self.word} {bits} to {self.double}")

    def size(self, value: str) -> str:
        return self.c.intrinsic("fabs", F64, value)

    def choose(self, condition: str, a: str, b: str) -> str:
        return self.c.select(condition, F64, a, b)

    def two_sum(self, a: str, b: str) -> tuple[str, str]:
        """The rounded sum and its error, exact unless the sum overflows (Knuth)."""
        total = self.real("fadd", a, b)
        b_part = self.real("fsub", total, a)
        a_part = self.real("fsub", total, b_part)
        return total, self.real("fadd", self.real("fsub", a, a_part), self.real("fsub", b, b_part))

    def add_to_odd(self, a: str, b: str) -> str:
        """The sum, rounded to odd."""
        total, error = self.two_sum(a, b)
        bits = self.bits(total)
        inexact = self.compare("one", error, 0.0)  # an infinite sum has a NaN here
        # One less where the error points to zero: the bits of the sum cut off. Then the last one is set.
        inward = self.integer("ashr", self.integer("xor", bits, self.bits(error)), 63)
        inward = self.c.select(inexact, I64, inward, self.c.number(I64, 0))
        odd = self.op(f"zext {self.mask} {inexact} to {self.word}")
        return self.from_bits(self.integer("or", self.integer("add", bits, inward), odd))

    def halves(self, a: str) -> tuple[str, str]:
        """Two parts of 26 bits, the products of which are exact (Veltkamp)."""
        scaled = self.real("fmul", a, self.number(_SPLIT))
        high = self.real("fsub", scaled, self.real("fsub", scaled, a))
        return high, self.real("fsub", a, high)

    def two_product(self, a: str, b: str) -> tuple[str, str]:
        """The rounded product and its error, exact where nothing overflows and the error is normal."""
        product = self.real("fmul", a, b)
        a_high, a_low = self.halves(a)
        b_high, b_low = self.halves(b)
        error = self.real("fsub", self.real("fmul", a_high, b_high), product)
        for x, y in ((a_high, b_low), (a_low, b_high), (a_low, b_low)):
            error = self.real("fadd", error, self.real("fmul", x, y))
        return product, error

    def exact_sum(self, a: str, b: str, addend: str) -> tuple[str, str]:
        """a * b + addend as a float and a rest that is rounded to odd."""
        product, product_error = self.two_product(a, b)
        low, low_error = self.two_sum(addend, product_error)
        high, high_error = self.two_sum(product, low)
        return high, self.add_to_odd(high_error, low_error)

    def power(self, exponent: str) -> str:
        """2 to a power in the range of normal numbers."""
        biased = self.integer("add", exponent, _BIAS)
        return self.from_bits(self.integer("shl", biased, _FRACTION))

    def scale(self, value: str, exponent: str) -> str:
        """value * 2^exponent in two steps, of which the first is exact for the exponents of `hard`."""
        half = self.integer("ashr", exponent, 1)
        value = self.real("fmul", value, self.power(half))
        return self.real("fmul", value, self.power(self.integer("sub", exponent, half)))


class _Fma(_Doubles):
    """The body of the function: what holds for usual numbers, and a branch for the others."""

    def __init__(self, c: Context, a: str, b: str, addend: str) -> None:
        super().__init__(c)
        self.a, self.b, self.addend = a, b, addend
        self.product = self.real("fmul", a, b)
        self.plain = self.real("fadd", self.product, addend)

    def result(self) -> str:
        emit = self.c.emit
        high, rest = self.exact_sum(self.a, self.b, self.addend)
        usual = self.real("fadd", high, rest)
        # An exact sum of zero has the sign that the plain operations give it.
        usual = self.choose(self.compare("oeq", usual, 0.0), self.plain, usual)
        is_usual = self.is_moderate()
        unusual = self.op(f"xor {self.mask} {is_usual}, {_all_true(self.c.width)}")
        some = unusual
        if self.c.width:
            name = f"llvm.vector.reduce.or.v{self.c.width}i1"
            some = emit.call("i1", name, [(self.mask, unusual)])
        hard, done, before = emit.new_block("hard"), emit.new_block("done"), emit.block
        emit.branch_if(some, hard, done)
        emit.start(hard)
        other = self.choose(is_usual, usual, self.hard())
        after = emit.block
        emit.branch(done)
        emit.start(done)
        return emit.phi(self.double, [(usual, before), (other, after)]).name

    def is_moderate(self) -> str:
        """Where no step overflows, and the error of the product does not underflow."""
        a, b, addend, product = (self.size(v) for v in (self.a, self.b, self.addend, self.product))
        small = self.both(self.compare("olt", a, 2.0**900), self.compare("olt", b, 2.0**900))
        small = self.both(small, self.compare("olt", product, 2.0**1000))
        small = self.both(small, self.compare("olt", addend, 2.0**1000))
        zero = self.either(self.compare("oeq", a, 0.0), self.compare("oeq", b, 0.0))
        return self.both(small, self.either(zero, self.compare("ogt", product, 2.0**-900)))

    def hard(self) -> str:
        """Lanes with infinities, NaN, or numbers near the ends of the range."""
        infinity = float("inf")
        a, b, addend = (self.size(v) for v in (self.a, self.b, self.addend))
        result = self.scaled()
        # A product that underflows to zero keeps its sign: it is no exact zero, as an addition would take it.
        result = self.choose(self.compare("oeq", addend, 0.0), self.product, result)
        # A product may overflow where the sum with an infinity or NaN must not see it.
        result = self.choose(self.compare("olt", addend, infinity), result, self.addend)
        finite = self.both(self.compare("olt", a, infinity), self.compare("olt", b, infinity))
        proper = self.both(self.compare("ogt", a, 0.0), self.compare("ogt", b, 0.0))
        return self.choose(self.both(finite, proper), result, self.plain)

    def parts(self, value: str) -> tuple[str, str]:
        """Significands from 1 to 2 with their signs, and exponents, of lanes that are finite and not zero."""
        tiny = self.compare("olt", self.size(value), 2.0**-1022)
        value = self.choose(tiny, self.real("fmul", value, self.number(2.0**_LIFT)), value)
        bits = self.bits(value)
        exponent = self.integer("and", self.integer("lshr", bits, _FRACTION), 0x7FF)
        bias = self.c.select(tiny, I64, self.c.number(I64, _BIAS + _LIFT), self.c.number(I64, _BIAS))
        digits = self.integer("and", bits, _SIGN_AND_FRACTION)
        return self.from_bits(self.integer("or", digits, _BIAS << _FRACTION)), self.integer(
            "sub", exponent, bias
        )

    def scaled(self) -> str:
        """Finite lanes without zeros, their exponents taken out and put back at the end.

        The smaller of product and addend is moved up where it lies so far below the larger one that only its
        being there matters: 2^-130 and 2^70 are beyond the 106 bits of a product and the 53 of an addend. No
        exponent that is put back is below -1144, and all above 1200 overflow.
        """
        (a, a_exponent), (b, b_exponent), (addend, addend_exponent) = map(
            self.parts, (self.a, self.b, self.addend)
        )
        product_exponent = self.integer("add", a_exponent, b_exponent)
        distance = self.integer("sub", addend_exponent, product_exponent)
        far = self.op(f"icmp sgt {self.word} {distance}, {self.c.number(I64, 70)}")
        exponent = self.c.select(far, I64, self.integer("sub", addend_exponent, 70), product_exponent)
        exponent = self.extremum("smin", self.extremum("smax", exponent, -1300), 1200)
        moved = self.extremum("smin", self.extremum("smax", distance, -130), 70)
        high, rest = self.exact_sum(a, b, self.real("fmul", addend, self.power(moved)))
        total = self.real("fadd", high, rest)
        normal = self.scale(total, exponent)
        below = self.compare("ole", self.size(normal), 2.0**-1022)
        return self.choose(below, self.subnormal(high, rest, total, exponent), normal)

    def subnormal(self, high: str, rest: str, total: str, exponent: str) -> str:
        """(high + rest) * 2^exponent as a multiple of the smallest subnormal: adding 2^52 of them makes them
        the last place.
        """
        # Only zeros are small at a large exponent, and take any anchor.
        top = self.extremum("smax", self.integer("sub", self.c.number(I64, 52 - 1074), exponent), -1022)
        # Where a sum cancelled, the first part is a zero without meaning; the total has the sign.
        anchor = self.c.intrinsic("copysign", F64, self.power(top), total)
        near, error = self.two_sum(anchor, high)
        rounded = self.real("fsub", self.real("fadd", near, self.add_to_odd(error, rest)), anchor)
        return self.c.intrinsic("copysign", F64, self.scale(rounded, exponent), total)

    def extremum(self, name: str, a: str, b: int) -> str:
        return self.c.intrinsic(name, I64, a, self.c.number(I64, b))


def _all_true(width: int) -> str:
    return "splat (i1 true)" if width else "true"

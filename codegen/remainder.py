"""Machine code of the remainder of floats, C's `fmod`: exact, and no call.

Both lowerings divide long, many bits of the quotient at a time, until no lane has bits left.
Every round is exact, so what a lane gets does not depend on its neighbours. Lanes that are done with fewer
rounds go on dividing a remainder that is smaller than the divisor, which leaves it.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.codegen.context import Context
from blocklang.codegen.emitter import vector_of
from blocklang.codegen.roundings import round_to_integral
from blocklang.ir.types import F32, F64, I64, ScalarType

_FRACTION = 52  # bits of an f64 below its leading one
_HIDDEN = 1 << _FRACTION
_NARROW = 29  # bits of a quotient in a round: 24 more make an f64
_WIDE = 50  # bits of a quotient in a round, to be had from one f64 division to the unit
_LIFT = 54  # 2^54 makes every subnormal normal


def float_remainder(c: Context, type: ScalarType, dividend: str, divisor: str) -> str:
    """The remainder of f32 or f64 lanes, with the sign of the dividend.

    NaN if the dividend is infinite, the divisor zero, or one of them NaN; the dividend if it is the smaller.
    """
    # The loop asks all lanes, and lanes that nothing has set must not decide.
    x, y = (c.emit.op(f"freeze {c.type(type)} {v}") for v in (dividend, divisor))
    a, b = c.intrinsic("fabs", type, x), c.intrinsic("fabs", type, y)
    kind, masks = c.type(type), c.mask_type
    finite = c.emit.op(f"fcmp olt {kind} {a}, {c.number(type, float('inf'))}")
    some = c.emit.op(f"fcmp ogt {kind} {b}, {c.number(type, 0.0)}")
    valid = c.emit.op(f"and {masks} {finite}, {some}")
    smaller = c.emit.op(f"and {masks} {valid}, {c.emit.op(f'fcmp olt {kind} {a}, {b}')}")
    divides = c.emit.op(f"and {masks} {valid}, {c.emit.op(f'fcmp oge {kind} {a}, {b}')}")
    a = c.select(divides, type, a, c.number(type, 1.0))
    b = c.select(divides, type, b, c.number(type, 1.0))
    size = _Words(c).narrow(a, b) if type == F32 else _Words(c).wide(a, b)
    signed = c.intrinsic("copysign", type, size, x)
    kept = c.select(smaller, type, x, c.number(type, float("nan")))
    return c.select(divides, type, signed, kept)


class _Words:
    """Long division in lanes of 64 bits."""

    def __init__(self, c: Context) -> None:
        self.c = c
        self.emit = c.emit
        self.word, self.double = c.type(I64), c.type(F64)

    def narrow(self, dividend: str, divisor: str) -> str:
        """|dividend| rem |divisor| of f32 lanes.

        A round takes q = trunc(a / s) from s = b 2^j, where j leaves q 29 bits or 30. In units of the last
        place of s, a < 2^53: so a and q s are exact, and so is their difference; and a quotient that is no
        integer is further from the next one than the division errs.
        """
        single, limit = self.c.type(F32), _NARROW
        b = self.op(f"fpext {single} {divisor} to {self.double}")
        start = self.op(f"fpext {single} {dividend} to {self.double}")
        exponent = self._exponent(b)

        def divide(a: str) -> tuple[str, str]:
            above = self._integer("sub", self._integer("sub", self._exponent(a), exponent), limit)
            shift = self._extremum("smax", above, 0)
            scale = self._integer("shl", shift, _FRACTION)
            s = self._as_double(self._integer("add", self._as_word(b), scale))
            quotient = round_to_integral(self.c, F64, "trunc", self._float("fdiv", a, s))
            rest = self._float("fsub", a, self._float("fmul", quotient, s))
            return rest, self.op(f"fcmp oge {self.double} {rest}, {b}")

        rest = self._until_done(self.double, start, divide)
        return self.op(f"fptrunc {self.double} {rest} to {single}")

    def wide(self, dividend: str, divisor: str) -> str:
        """|dividend| rem |divisor| of f64 lanes.

        With both as a 53-bit integer and an exponent, a round takes k <= 50 places of the difference of the
        exponents: r becomes r 2^k - q m, for q near r 2^k / m < 2^51. A division, and its result rounded to
        an integer, errs by one at most, upwards only; so the new r is in [-m, m), whatever is lost above 64
        bits on the way, and m is added where it is negative.
        """
        m, low = self._parts(divisor)
        r, high = self._parts(dividend)
        by = self.op(f"uitofp {self.word} {m} to {self.double}")
        # Whole numbers below 2^52 and doubles from 2^52 on share their lower bits.
        anchor = self.c.number(F64, float(_HIDDEN))
        left = self._integer("sub", high, low)
        pair = self.op(f"insertvalue {{ {self.word}, {self.word} }} poison, {self.word} {r}, 0")
        state = self.op(f"insertvalue {{ {self.word}, {self.word} }} {pair}, {self.word} {left}, 1")
        both = f"{{ {self.word}, {self.word} }}"

        def divide(state: str) -> tuple[str, str]:
            r, left = (self.op(f"extractvalue {both} {state}, {i}") for i in (0, 1))
            places = self._extremum("umin", left, _WIDE)
            size = self._float(
                "fmul", self.op(f"uitofp {self.word} {r} to {self.double}"), self._power(places)
            )
            whole = self._float("fadd", self._float("fdiv", size, by), anchor)
            q = self._integer("and", self._as_word(whole), _HIDDEN - 1)
            rest = self._integer("sub", self._integer("shl", r, places), self._integer("mul", q, m))
            below = self.op(f"icmp slt {self.word} {rest}, {self.c.number(I64, 0)}")
            rest = self._integer("add", rest, self.c.select(below, I64, m, self.c.number(I64, 0)))
            left = self._integer("sub", left, places)
            first = self.op(f"insertvalue {both} poison, {self.word} {rest}, 0")
            more = self.op(f"icmp ne {self.word} {left}, {self.c.number(I64, 0)}")
            return self.op(f"insertvalue {both} {first}, {self.word} {left}, 1"), more

        r = self.op(f"extractvalue {both} {self._until_done(both, state, divide)}, 0")
        # 2^low can be too small for a double; of two factors of half its exponent none is.
        size = self.op(f"uitofp {self.word} {r} to {self.double}")
        half = self._integer("ashr", low, 1)
        size = self._float("fmul", size, self._power(half))
        return self._float("fmul", size, self._power(self._integer("sub", low, half)))

    def _parts(self, value: str) -> tuple[str, str]:
        """An integer from 2^52 to 2^53, and the exponent of 2 that it is to be multiplied with."""
        tiny = self.op(f"fcmp olt {self.double} {value}, {self.c.number(F64, 2.0**-1022)}")
        lifted = self._float("fmul", value, self.c.number(F64, 2.0**_LIFT))
        value = self.c.select(tiny, F64, lifted, value)
        bias = self.c.select(tiny, I64, self.c.number(I64, -1075 - _LIFT), self.c.number(I64, -1075))
        digits = self._integer("and", self._as_word(value), _HIDDEN - 1)
        return self._integer("or", digits, _HIDDEN), self._integer("add", self._exponent(value), bias)

    def _until_done(self, kind: str, start: str, divide: Callable[[str], tuple[str, str]]) -> str:
        """Divide once, and again as long as a lane has bits of the quotient left."""
        emit, width = self.emit, self.c.width
        again, done, before = emit.new_block("divide"), emit.new_block("divided"), emit.block
        emit.branch(again)
        emit.start(again)
        phi = emit.phi(kind, [(start, before)])
        rest, more = divide(phi.name)
        if width:
            masks = vector_of("i1", width)
            more = emit.call("i1", f"llvm.vector.reduce.or.v{width}i1", [(masks, more)])
        phi.add(rest, again)
        emit.branch_if(more, again, done)
        emit.start(done)
        return rest

    def op(self, text: str) -> str:
        return self.emit.op(text)

    def _float(self, opcode: str, a: str, b: str) -> str:
        return self.op(f"{opcode} {self.double} {a}, {b}")

    def _integer(self, opcode: str, a: str, b: str | int) -> str:
        text = self.c.number(I64, b) if isinstance(b, int) else b
        return self.op(f"{opcode} {self.word} {a}, {text}")

    def _extremum(self, name: str, a: str, b: int) -> str:
        return self.c.intrinsic(name, I64, a, self.c.number(I64, b))

    def _as_word(self, value: str) -> str:
        return self.op(f"bitcast {self.double} {value} to {self.word}")

    def _as_double(self, bits: str) -> str:
        return self.op(f"bitcast {self.word} {bits} to {self.double}")

    def _exponent(self, value: str) -> str:
        """The biased exponent of lanes without a sign."""
        return self._integer("lshr", self._as_word(value), _FRACTION)

    def _power(self, exponent: str) -> str:
        """2 to a power in the range of normal numbers."""
        return self._as_double(self._integer("shl", self._integer("add", exponent, 1023), _FRACTION))

"""Random numbers: Philox counters (Salmon and others, 2011), with the bits that Triton gives.

A generator is a pure function of a seed and an offset: the same pair gives the same number in every lane,
program and mode. The counter is (low half of the offset, high half of a 64-bit offset, 0, 0), the key the
two halves of the seed as a 64-bit integer. A round multiplies two words of the counter to twice their width
and mixes them with the others and the key, which grows by a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.constexpr import describe, static_int
from blocklang.language.dtypes import dtype
from blocklang.language.maths import cos, log, maximum, sin, sqrt, umulhi, where
from blocklang.language.registry import builtin
from blocklang.language.tensor import constant, tensor, to_tensor

N_ROUNDS_DEFAULT = 10

Four = tuple[tensor, tensor, tensor, tensor]


@dataclass(frozen=True)
class Words:
    """The constants of one word size: what a round multiplies by, and what the key grows by."""

    dtype: dtype
    rounds: tuple[int, int]
    key: tuple[int, int]


_WORDS = (
    Words(tl.uint32, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    Words(
        tl.uint64,
        (0xD2E7470EE14C6C93, 0xCA5A826395121157),
        (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
    ),
)


def _words_of(value: tensor, what: str) -> Words:
    for words in _WORDS:
        if value.dtype.is_int() and value.dtype.primitive_bitwidth == words.dtype.primitive_bitwidth:
            return words
    raise CompilationError(
        f"{what} needs integers of 32 or 64 bits, got {describe(value)}",
        help="convert first, for instance `offsets.to(tl.uint32)`",
    )


def _integer(value: Any, what: str) -> tensor:
    converted = to_tensor(value)
    if not converted.dtype.is_int():
        raise CompilationError(f"{what} must be an integer, got {describe(value)}")
    return converted


@builtin
def philox_impl(
    c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = N_ROUNDS_DEFAULT
) -> Four:
    """Rounds of Philox on a counter of four words and a key of two.

    Args:
        c0, c1, c2, c3: the counter, all uint32 or all uint64.
        k0, k1: the key, of the same type.
        n_rounds: how many rounds, known at compile time.

    Returns:
        The four words after the last round.

    Example:
        zero = tl.full((8,), 0, tl.uint32)
        a, b, c, d = tl.philox_impl(tl.arange(0, 8).to(tl.uint32), zero, zero, zero, zero, zero)
    """
    state = [to_tensor(c) for c in (c0, c1, c2, c3)]
    key = [to_tensor(k) for k in (k0, k1)]
    words = _words_of(state[0], "philox_impl")
    for value in (*state, *key):
        if value.dtype != words.dtype:
            raise CompilationError(
                f"philox_impl needs counters and keys of type {words.dtype}, got {describe(value)}"
            )
    first, second = (constant(m, words.dtype) for m in words.rounds)
    growths = [constant(g, words.dtype) for g in words.key]
    for _ in range(static_int(n_rounds, "n_rounds")):
        high_second, high_first = umulhi(second, state[2]), umulhi(first, state[0])
        state = [
            high_second ^ state[1] ^ key[0],
            second * state[2],
            high_first ^ state[3] ^ key[1],
            first * state[0],
        ]
        key = [k + growth for k, growth in zip(key, growths, strict=True)]
    return state[0], state[1], state[2], state[3]


@builtin
def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> Four:
    """Four random words of a counter of four words: Philox4x32, or Philox4x64 for 64-bit counters.

    Args:
        seed: an integer, extended to 64 bits by its signedness. Its halves are the key of 32-bit counters;
            64-bit counters take it whole, beside a second key of 0.
        c0, c1, c2, c3: the counter: integers of 32 or of 64 bits, read as unsigned.
        n_rounds: how many rounds, known at compile time.

    Returns:
        Four blocks of uint32, or uint64.

    Example:
        a, b, c, d = tl.philox(42, tl.arange(0, 8), 0, 0, 0)
    """
    key = cast_element(_integer(seed, "the seed"), tl.uint64)
    counters = [_integer(c, "a counter of philox") for c in (c0, c1, c2, c3)]
    words = _words_of(counters[0], "philox")
    a, b, c, d = (_as_word(counter, words.dtype) for counter in counters)
    if words.dtype == tl.uint64:
        return philox_impl(a, b, c, d, key, constant(0, tl.uint64), n_rounds)
    high, low = cast_element(key >> 32, tl.uint32), cast_element(key, tl.uint32)
    return philox_impl(a, b, c, d, low, high, n_rounds)


def _as_word(counter: tensor, word: dtype) -> tensor:
    if counter.dtype.primitive_bitwidth != word.primitive_bitwidth:
        raise CompilationError(
            f"the counters of philox have different widths: {counter.dtype} beside {word}",
            help="convert them to one type, for instance `c.to(tl.uint32)`",
        )
    return bitcast_element(counter, word)


@builtin
def randint4x(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> Four:
    """Four blocks of random uint32 for a block of offsets: all that one run of Philox gives.

    Args:
        seed: an integer.
        offset: integers, one for each lane; the upper half of a 64-bit one is the counter's second word.
        n_rounds: how many rounds, known at compile time.

    Example:
        a, b, c, d = tl.randint4x(42, tl.arange(0, 8))
    """
    offsets = _integer(offset, "an offset of random numbers")
    low = cast_element(offsets, tl.uint32)
    zero = constant(0, tl.uint32)
    high = cast_element(offsets >> 32, tl.uint32) if offsets.dtype.primitive_bitwidth > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@builtin
def randint(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> tensor:
    """A block of random uint32: the first of `randint4x`.

    Example:
        number = tl.randint(42, tl.arange(0, 8))
    """
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x: Any) -> tensor:
    """Map random 32- or 64-bit integers to fp32 numbers in [0, 1).

    The integer is read as signed; a negative x counts as -x - 1, and the rest is scaled by 4.6566127342e-10
    (32 bits) or 1.0842020432385337e-19 (64 bits).

    Example:
        u = tl.uint_to_uniform_float(tl.randint(42, tl.arange(0, 8)))
    """
    value = _integer(x, "what uint_to_uniform_float maps")
    if _words_of(value, "uint_to_uniform_float").dtype == tl.uint32:
        signed, scale = bitcast_element(value, tl.int32), 4.6566127342e-10
    else:
        signed, scale = bitcast_element(value, tl.int64), 1.0842020432385337e-19
    magnitude: tensor = where(signed < 0, -signed - 1, signed) * scale
    return magnitude


@builtin
def rand(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> tensor:
    """A block of random fp32 numbers, uniform in [0, 1).

    Args:
        seed: an integer.
        offset: integers, one for each lane: equal offsets give equal numbers.
        n_rounds: how many rounds of Philox, known at compile time.

    Example:
        keep = tl.rand(42, tl.arange(0, 8)) > 0.1
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed: Any, offsets: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> Four:
    """Four blocks of random fp32 numbers, uniform in [0, 1), for the price of one `rand`.

    Example:
        a, b, c, d = tl.rand4x(42, tl.arange(0, 8))
    """
    a, b, c, d = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(a),
        uint_to_uniform_float(b),
        uint_to_uniform_float(c),
        uint_to_uniform_float(d),
    )


@builtin
def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[tensor, tensor]:
    """Two blocks of normal numbers from two of uniform ones, by Box and Muller.

    r = sqrt(-2 log(max(u1, 1e-7))); the results are r cos(2 pi u2) and r sin(2 pi u2).

    Example:
        i = tl.arange(0, 8)
        a, b = tl.pair_uniform_to_normal(tl.rand(1, i), tl.rand(2, i))
    """
    radius = sqrt(-2.0 * log(maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * to_tensor(u2)
    return radius * cos(angle), radius * sin(angle)


@builtin
def randn(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> tensor:
    """A block of random fp32 numbers of the standard normal distribution.

    Example:
        noise = tl.randn(42, tl.arange(0, 8))
    """
    first, second, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(first), uint_to_uniform_float(second))[0]


@builtin
def randn4x(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT) -> Four:
    """Four blocks of random fp32 numbers of the standard normal distribution, from one run of Philox.

    Example:
        a, b, c, d = tl.randn4x(42, tl.arange(0, 8))
    """
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(u1, u2), *pair_uniform_to_normal(u3, u4))

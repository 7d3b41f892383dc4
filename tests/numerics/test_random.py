"""Philox and what is made of it: known answers, and Python's integers as the reference.

The known answers are those of Triton 3.7.1's own interpreter; the words of the 32-bit generator with counter
and key of zeros and ones are those of the paper's test vectors.
"""

from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.random_kernels import by_hand, dropout, numbers, wide_words, words

OFFSETS = {
    "int32": np.array([0, 1, 2, 3, -1, 2**31 - 1, 12345, 77], np.int32),
    "int64": np.array([0, 1, 2**32, 2**40 + 7, -1, 2**63 - 1, 12345, -(2**63)], np.int64),
}
# Type of the offsets, seed, rounds; every fifth of the 32 words; the bits of `rand`.
KNOWN: list[tuple[str, int, int, list[int], list[int]]] = [
    (
        "int32", 0, 10,
        [1713891541, 1605630974, 1372009126, 1777536284, 297526523, 159317863, 3626807443],
        [1061965777, 1029924458, 1025463396, 1054456898, 1055471573, 1061119991, 1043060652, 1064425180],
    ),
    (
        "int32", 0, 7,
        [1601156873, 2517842101, 2995905418, 2848089716, 3529470997, 2633608408, 3181886485],
        [1061085037, 1062177614, 1056480404, 1061054733, 1062421570, 1062459790, 1065324577, 1057966064],
    ),
    (
        "int32", 42, 10,
        [2632642643, 3505550395, 2827443659, 115807908, 702365196, 1951270651, 1665151995],
        [1061562910, 1019819957, 1051873270, 1057649142, 1063012389, 1052522030, 1040608956, 1050539551],
    ),
    (
        "int32", 42, 7,
        [2462826906, 1326476459, 3921139244, 3951049853, 4037154540, 2145755386, 3982316369],
        [1062889596, 1059762608, 1058006850, 1061368166, 1059859364, 1058939096, 1052227820, 1059837866],
    ),
    (
        "int32", -5, 10,
        [3360914921, 1162653925, 4204618146, 2567519467, 172583469, 2824282481, 3511284544],
        [1054781959, 1062403949, 1060435996, 1064726066, 1063520575, 1057659233, 1057247534, 1037873452],
    ),
    (
        "int32", -5, 7,
        [1294290144, 3320955491, 3513572394, 617519899, 3597654229, 2705057651, 1230167348],
        [1058687641, 1030029013, 1057487500, 1048643675, 1048727373, 1055406325, 1065162106, 1061714606],
    ),
    (
        "int32", 2**40 + 3, 10,
        [1440152241, 635136639, 2045071214, 2860234198, 2448276561, 3227185431, 3258840164],
        [1059827188, 1049577779, 1015171686, 1063277898, 1055870908, 1050111401, 1040866505, 1056144671],
    ),
    (
        "int32", 2**40 + 3, 7,
        [3068270166, 3429876243, 126436711, 1039246735, 1993631647, 1018274169, 4272579287],
        [1058159570, 1020145579, 1045600475, 994955593, 1063938683, 1053704439, 1042288660, 1057777005],
    ),
    (
        "int64", 0, 10,
        [1713891541, 3983593165, 3928187465, 1363183474, 1518119633, 159317863, 3626807443],
        [1061965777, 1029924458, 1062576523, 1058375353, 1036196026, 1041529225, 1043060652, 1060805605],
    ),
    (
        "int64", 0, 7,
        [1601156873, 2944110641, 2889660787, 3410663083, 1721165526, 2633608408, 3181886485],
        [1061085037, 1062177614, 1057720261, 1055449231, 1044189868, 1059129567, 1065324577, 1042121188],
    ),
    (
        "int64", 42, 10,
        [2632642643, 744450077, 2109693416, 1097941434, 1873683324, 1951270651, 1665151995],
        [1061562910, 1019819957, 1057341808, 1050974139, 1063353988, 1051819423, 1040608956, 1047639168],
    ),
    (
        "int64", 42, 7,
        [2462826906, 3032943721, 1091992098, 1530177462, 1772297720, 2145755386, 3982316369],
        [1062889596, 1059762608, 1064973339, 1044984832, 1061531165, 1058435558, 1052227820, 1059334737],
    ),
    (
        "int64", -5, 10,
        [3360914921, 3504011581, 2115560355, 1832877155, 2207207299, 2824282481, 3511284544],
        [1054781959, 1062403949, 1038777947, 1043984345, 1051782636, 1052546074, 1057247534, 1044271769],
    ),
    (
        "int64", -5, 7,
        [1294290144, 3708833662, 3165596895, 3666383088, 1488290480, 2705057651, 1230167348],
        [1058687641, 1030029013, 1063721451, 1047615781, 1060838073, 1049345729, 1065162106, 1058830430],
    ),
    (
        "int64", 2**40 + 3, 10,
        [1440152241, 3984105377, 2531984810, 2924229018, 3088804668, 3227185431, 3258840164],
        [1059827188, 1049577779, 1057155220, 1058809470, 1057713836, 1041513218, 1040866505, 1053855007],
    ),
    (
        "int64", 2**40 + 3, 7,
        [3068270166, 1916327981, 639429723, 60838919, 2664230539, 1018274169, 4272579287],
        [1058159570, 1020145579, 1049449440, 1057151234, 1051836250, 1063547311, 1042288660, 1047165503],
    ),
]  # fmt: skip
# Seed; every fifth of the 32 words of `wide_words` on the 64-bit offsets; the bits of the uniform numbers.
KNOWN_64: list[tuple[int, list[int], list[int]]] = [
    (
        42,
        [1440621760236827980, 11321793950063313843, 16366346482561678017, 548008539526348300,
         5547069722279543357, 4757670439754996870, 6660724833157382875],
        [1042280686, 1036042781, 1049109856, 1044586257, 1060456855, 1061536207, 1063316617, 1044036503],
    ),
    (
        -5,
        [1507553281691780039, 15779173898313217012, 10751770578227047651, 15741845782214015138,
         7366453173636716592, 6310628979932699531, 6244912254350325786],
        [1042767677, 1062816683, 1063714219, 1050400128, 1048587954, 1049891955, 1062442719, 1053265606],
    ),
]  # fmt: skip
SEEDS = (0, 42, -5, 2**40 + 3)


def philox(
    counter: tuple[int, int, int, int], key: tuple[int, int], bits: int, rounds: int = 10
) -> list[int]:
    """The definition, on Python's integers."""
    multipliers, growth = {
        32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
        64: ((0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)),
    }[bits]
    mask = (1 << bits) - 1
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(rounds):
        first, second = multipliers[0] * c0, multipliers[1] * c2
        c0, c1, c2, c3 = (second >> bits) ^ c1 ^ k0, second & mask, (first >> bits) ^ c3 ^ k1, first & mask
        k0, k1 = (k0 + growth[0]) & mask, (k1 + growth[1]) & mask
    return [c0, c1, c2, c3]


def expected_words(seed: int, offsets: Array, rounds: int = 10) -> Array:
    low = 0xFFFFFFFF
    key = (seed & low, (seed >> 32) & low)
    wide = offsets.dtype.itemsize == 8
    counters = [(o & low, (o >> 32) & low if wide else 0, 0, 0) for o in offsets.tolist()]
    return np.array([philox(c, key, 32, rounds) for c in counters], np.uint32).T


def uniform_of(word: Array) -> Array:
    signed = word.view(f"i{word.dtype.itemsize}")
    scale = 4.6566127342e-10 if word.dtype.itemsize == 4 else 1.0842020432385337e-19
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(scale)


def test_the_reference_knows_the_published_vectors() -> None:
    ones = 0xFFFFFFFF
    assert philox((0, 0, 0, 0), (0, 0), 32) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((ones,) * 4, (ones,) * 2, 32) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize(("dtype", "seed", "rounds", "every_fifth", "uniform"), KNOWN)
def test_known_answers(
    dtype: str, seed: int, rounds: int, every_fifth: list[int], uniform: list[int]
) -> None:
    offsets = OFFSETS[dtype]
    got = launch_one(words, 1, Out((4, 8), "uint32"), offsets, seed, 8, BLOCK=8, ROUNDS=rounds)
    assert got.ravel()[::5].tolist() == every_fifth
    assert uniform_of(got[0]).view(np.uint32).tolist() == uniform


@pytest.mark.parametrize(("seed", "every_fifth", "uniform"), KNOWN_64)
def test_known_answers_of_64_bits(seed: int, every_fifth: list[int], uniform: list[int]) -> None:
    outputs = (Out((4, 8), "uint64"), Out((8,), "fp32"))
    got, numbers = launch_both(wide_words, 1, *outputs, OFFSETS["int64"], seed, 8, BLOCK=8)
    assert got.ravel()[::5].tolist() == every_fifth
    assert numbers.view(np.uint32).tolist() == uniform


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_words_of_every_offset_type(dtype: str, seed: int) -> None:
    """Odd extents and a ragged last block; small signed offsets extend to 32 bits, and have no upper word."""
    info = np.iinfo(dtype)
    offsets = np.random.default_rng(3).integers(info.min, info.max, 117, dtype=np.dtype(dtype), endpoint=True)
    got = launch_one(words, 4, Out((4, 117), "uint32"), offsets, seed, 117, BLOCK=33, ROUNDS=10)
    assert_same_bits(got, expected_words(seed, offsets))


@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_rounds(rounds: int) -> None:
    offsets = np.arange(40, dtype=np.int32)
    got = launch_one(words, 2, Out((4, 40), "uint32"), offsets, 9, 40, BLOCK=33, ROUNDS=rounds)
    assert_same_bits(got, expected_words(9, offsets, rounds))


def test_wide_words_of_odd_extents() -> None:
    counters = np.random.default_rng(4).integers(-(2**63), 2**63 - 1, 101, dtype=np.int64)
    outputs = (Out((4, 101), "uint64"), Out((101,), "fp32"))
    got, uniform = launch_both(wide_words, 3, *outputs, counters, 7, 101, BLOCK=37)
    mask = (1 << 64) - 1
    rows = [philox((c & mask, (c + 1) & mask, (c * 3) & mask, 0), (7, 0), 64) for c in counters.tolist()]
    assert_same_bits(got, np.array(rows, np.uint64).T)
    assert_same_bits(uniform, uniform_of(got[0]))


def test_uniform_and_normal_numbers() -> None:
    """The normal ones to a few units of their largest, 5.7: three functions of one unit each."""
    offsets = np.arange(1000, dtype=np.int32) * 977
    outputs = (Out((6, 1000), "fp32"), Out((5, 1000), "fp32"))
    uniform, normal = launch_both(numbers, 8, *outputs, offsets, 42, 1000, BLOCK=130)
    expected = uniform_of(expected_words(42, offsets))
    assert_same_bits(uniform[:4], expected)
    assert_same_bits(uniform[4], expected[0])
    assert_same_bits(uniform[5], expected[0])
    assert ((expected >= 0) & (expected < 1)).all()
    u1, u2 = np.maximum(expected[::2], np.float32(1e-7)), expected[1::2] * np.float32(2 * np.pi)
    radius, angle = np.sqrt(-2 * np.log(u1.astype(np.float64))), u2.astype(np.float64)
    exact = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(4, 1000)
    assert np.abs(normal[:4] - exact).max() < 6 * 2.0**-22
    assert_same_bits(normal[4], normal[0])


def test_the_parts_make_the_whole() -> None:
    outputs = (Out((2, 100), "uint32"), Out((100,), "fp32"))
    got, difference = launch_both(by_hand, 3, *outputs, -(2**35) - 7, 100, BLOCK=47)
    assert_same_bits(got, expected_words(-(2**35) - 7, np.arange(100, dtype=np.int32))[:2])
    assert not difference.any()


def test_many_numbers_look_uniform() -> None:
    """Mean, variance and the correlation of neighbours of 2^16 numbers, within five deviations."""
    x = np.ones(1 << 16, np.float32)
    out = np.zeros_like(x)
    dropout[bl.cdiv(x.size, 1024)](x, out, 1234, x.size, 0.25, BLOCK=1024)
    kept = out != 0
    assert abs(kept.mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / x.size)
    both = (kept[1:] & kept[:-1]).mean()
    assert abs(both - 0.75**2) < 5 * np.sqrt(0.25 / x.size)
    assert np.allclose(out[kept], 1 / 0.75)

"""Names of Triton's language that are known and not built yet, each with what to write meanwhile."""

from __future__ import annotations

_NO_SUBSTITUTE = "there is no substitute yet"

NOT_BUILT_YET: dict[str, str | None] = {
    **dict.fromkeys(
        (
            *("rand", "randn", "randint", "rand4x", "randn4x", "randint4x", "philox", "philox_impl"),
            *("pair_uniform_to_normal", "uint_to_uniform_float"),
        ),
        "pass the random numbers in as an array",
    ),
    "swizzle2d": "compute the swizzled program ids with `//` and `%`",
    "inline_asm_elementwise": _NO_SUBSTITUTE,
    "extra": "the functions of libdevice are not built yet; see tl.math",
    **dict.fromkeys(("add", "sub", "mul"), "write the operator"),
    **dict.fromkeys(
        ("tuple_type", "slice", "void", "constexpr_type", "function_type"), "write a Python tuple"
    ),
    "target_info": "there is one target, the CPU",
}

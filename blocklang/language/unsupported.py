"""Names of Triton's language that are known and not built yet, each with what to write meanwhile."""

from __future__ import annotations

_FP8 = "store fp8 as uint8 outside, or use tl.float16"
_NO_SUBSTITUTE = "there is no substitute yet"

NOT_BUILT_YET: dict[str, str | None] = {
    **dict.fromkeys(("float8e5", "float8e4nv", "float8e4b8", "float8e5b16", "float8e4b15"), _FP8),
    **dict.fromkeys(
        (
            "atomic_add",
            "atomic_max",
            "atomic_min",
            "atomic_and",
            "atomic_or",
            "atomic_xor",
            "atomic_xchg",
            "atomic_cas",
        ),
        "write one partial result per program, and combine them in a second kernel",
    ),
    **dict.fromkeys(("sort", "topk", "bitonic_merge", "gather", "histogram"), _NO_SUBSTITUTE),
    **dict.fromkeys(("device_print", "device_assert"), "store what you want to see, and look at the array"),
    "dot_scaled": "scale the operands, then use tl.dot",
    "swizzle2d": "compute the swizzled program ids with `//` and `%`",
    **dict.fromkeys(("add", "sub", "mul"), "write the operator"),
    **dict.fromkeys(
        ("tuple_type", "slice", "void", "constexpr_type", "function_type"), "write a Python tuple"
    ),
    "target_info": "there is one target, the CPU",
}

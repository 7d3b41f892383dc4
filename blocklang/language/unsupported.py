"""Names of Triton's language that are known and not built yet, each with what to write meanwhile."""

from __future__ import annotations

NOT_BUILT_YET: dict[str, str | None] = {
    **dict.fromkeys(("add", "sub", "mul"), "write the operator"),
    **dict.fromkeys(
        ("tuple_type", "slice", "void", "constexpr_type", "function_type"), "write a Python tuple"
    ),
    "target_info": "there is one target, the CPU",
}

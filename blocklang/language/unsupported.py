"""Names of Triton's language that are known and not built yet, each with what to write meanwhile."""

from __future__ import annotations

NOT_BUILT_YET: dict[str, str | None] = {
    "extern_elementwise": "there is no bitcode to link; see tl.extra.libdevice for its functions",
    "function_type": "annotate the parameter `tl.constexpr`",
}

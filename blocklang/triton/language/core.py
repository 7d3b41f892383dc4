"""`triton.language.core`: what is defined in Triton's core module."""

from __future__ import annotations

from blocklang.language.aggregate import aggregate as _aggregate  # noqa: F401
from blocklang.language.constexpr import unwrap as _unwrap_if_constexpr  # noqa: F401
from blocklang.triton.forwarding import forward

__getattr__, __dir__ = forward(
    __name__,
    "blocklang.language",
    "blocklang.language.dtypes",
    "blocklang.language.tensor",
    "blocklang.language.constexpr",
)

TRITON_MAX_TENSOR_NUMEL = 1048576

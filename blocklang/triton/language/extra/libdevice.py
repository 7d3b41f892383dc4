"""`libdevice`: mathematical functions under the names that CUDA's library of that name gives them."""

from __future__ import annotations

from blocklang.triton.forwarding import forward

__getattr__, __dir__ = forward(
    __name__,
    "blocklang.language.extra.libdevice",
    "blocklang.language.libdevice",
    "blocklang.language:math",
)

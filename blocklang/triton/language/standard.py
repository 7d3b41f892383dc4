"""`triton.language.standard`: functions that Triton writes in its own language."""

from __future__ import annotations

from blocklang.triton.forwarding import forward

__getattr__, __dir__ = forward(__name__, "blocklang.language")

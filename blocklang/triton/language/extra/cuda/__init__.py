"""`triton.language.extra.cuda`: what is particular to a GPU; `libdevice` is everybody's."""

from __future__ import annotations

import sys as _sys

from blocklang.triton.forwarding import forward as _forward
from blocklang.triton.language.extra import libdevice

_sys.modules[f"{__name__}.libdevice"] = libdevice  # one module under every name

__all__ = ["libdevice"]

__getattr__, __dir__ = _forward(__name__, "blocklang.language.extra.cuda", "blocklang.language.extra")

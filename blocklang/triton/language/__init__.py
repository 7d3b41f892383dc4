"""`triton.language`: everything of `blocklang.language`, and its parts under Triton's names.

The objects are the same, so kernels of both spellings call one another.
"""

from __future__ import annotations

import sys as _sys

import blocklang.language as _language
from blocklang.triton.forwarding import forward as _forward

# Names are copied, so that `from triton.language import *` finds them; what is defined later is looked up.
for _name in _language.__all__:
    if _name != "math":
        setattr(_sys.modules[__name__], _name, getattr(_language, _name))
__all__ = [_name for _name in _language.__all__ if _name != "math"]

from blocklang.triton.language import core, extra, math, random, standard, target_info  # noqa: E402

__all__ += ["core", "extra", "math", "random", "standard", "target_info"]

TRITON_MAX_TENSOR_NUMEL = 1048576

__getattr__, __dir__ = _forward(__name__, "blocklang.language")

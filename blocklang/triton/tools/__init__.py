"""`triton.tools`: `tensor_descriptor`."""

from __future__ import annotations

from blocklang.triton.tools import tensor_descriptor

__all__ = ["tensor_descriptor"]

"""Kernels inside of JAX programs. Nothing here is imported unless JAX is in use.

    operators  `op`: a kernel as an operator under `jit`, `vmap`, `grad` and `shard_map`
    calls      what is compiled for one call of an operator, and XLA's custom call of it

JAX's arrays as arguments of launches need none of this: they are read-only arrays with DLPack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.jax.operators import Operator, op

__all__ = ["Operator", "op"]

__getattr__ = on_demand(__name__, dict.fromkeys(__all__, "blocklang.jax.operators"))

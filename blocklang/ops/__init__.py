"""Every operation's one declaration, by family. Importing this package registers all of them.

elementwise   arithmetic, comparison, bits, selection, casts, mathematical functions
creation      constants, arange, splat, program_id
shape         expand_dims, broadcast, reshape, trans
memory        offset, load, store
atomics       atomic_rmw, atomic_cas, fence
reduction     reduce, arg_reduce, reduce_with, dot
scan          scan, map_elementwise
order         sort, topk, gather, histogram
events        device_print, device_assert
control       if, for, while and their terminators
tile          Tile IR: iterate, contract; buffer, lanes, group, ...
"""

from __future__ import annotations

from blocklang.ops import (
    atomics,
    control,
    creation,
    elementwise,
    events,
    memory,
    order,
    reduction,
    scan,
    shape,
    tile,
)

__all__ = [
    "atomics",
    "control",
    "creation",
    "elementwise",
    "events",
    "memory",
    "order",
    "reduction",
    "scan",
    "shape",
    "tile",
]

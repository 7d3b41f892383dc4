"""The NumPy meaning of every op, and the two drivers that run it.

`run_kernel` walks IR of any level. `interpret_launch` runs the user's own Python function. Importing this
package registers all evaluators.
"""

from __future__ import annotations

from blocklang.interpreter import (
    atomics,
    control,
    creation,
    elementwise,
    events,
    memory,
    order,
    reduction,
    scans,
    shape,
    tile,
)
from blocklang.interpreter.interpret import LaunchArgument, interpret_launch
from blocklang.interpreter.run import run_kernel

__all__ = [
    "LaunchArgument",
    "atomics",
    "control",
    "creation",
    "elementwise",
    "events",
    "interpret_launch",
    "memory",
    "order",
    "reduction",
    "run_kernel",
    "scans",
    "shape",
    "tile",
]

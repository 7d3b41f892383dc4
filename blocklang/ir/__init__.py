"""The intermediate representation: types, values, operations, regions, text, verification.

Public names of the room; what operations exist is declared in `blocklang.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.ir.parser import parse_kernel
    from blocklang.ir.printer import print_kernel
    from blocklang.ir.verifier import verify

__all__ = ["Builder", "Kernel", "Operation", "Region", "Value", "parse_kernel", "print_kernel", "verify"]

__getattr__ = on_demand(  # compiling a kernel needs none of these
    __name__,
    {
        "parse_kernel": "blocklang.ir.parser",
        "print_kernel": "blocklang.ir.printer",
        "verify": "blocklang.ir.verifier",
    },
)

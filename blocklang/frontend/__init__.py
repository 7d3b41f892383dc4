"""Python source to Block IR.

    source      a function's text, tree and captured values, found robustly (`KernelSource`)
    arguments   what a launch says of each parameter (`Argument`)
    build       `build_kernel`: the entry
    base        the visitor's trunk: dispatch by allow-list, locations, errors
    branches    lists of statements, `if`, jumps
    carry, loops   `for`, `while`, unrolled loops, and what they carry
    lookup      names that lead outside, and dependencies
    foreign     what to write instead of NumPy's names; Python's functions at compile time
    strict      what strict mode refuses, each rule with its message
    expressions, calls, statements   the rest of the syntax, each building on the one before
    scope, names, values             environments, and values as trees

What operators and functions mean is not decided here but in `blocklang.language`.
"""

from __future__ import annotations

from blocklang.frontend.arguments import NOT_CONSTEXPR, Argument
from blocklang.frontend.build import BuiltKernel, build_kernel, build_with_dependencies, check_kernel
from blocklang.frontend.scope import Dependency
from blocklang.frontend.source import KernelSource, Parameter

__all__ = [
    "NOT_CONSTEXPR",
    "Argument",
    "BuiltKernel",
    "Dependency",
    "KernelSource",
    "Parameter",
    "build_kernel",
    "build_with_dependencies",
    "check_kernel",
]

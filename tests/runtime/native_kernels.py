"""Kernels written by hand in LLVM IR, in the form that `abi` prescribes, for tests without a compiler."""

from __future__ import annotations

from blocklang.abi import KernelAbi
from blocklang.ir.types import I64, PointerType
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.loader import assemble

_LOOP = """
define void @kernel(ptr %arguments, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {{
start:
  %out = load ptr, ptr %arguments
  br label %head
head:
  %id = phi i64 [ %begin, %start ], [ %id.next, %program.end ]
  %more = icmp slt i64 %id, %end
  br i1 %more, label %program, label %done
program:
  %cell = getelementptr i64, ptr %out, i64 %id
{program}
  br label %program.end
program.end:
  %id.next = add i64 %id, 1
  br label %head
done:
  ret void
}}
"""

# out[id] += 1: shows programs that are left out or run twice.
COUNT = """
  %old = load i64, ptr %cell
  %new = add i64 %old, 1
  store i64 %new, ptr %cell
"""

# Program id waits until program id - 1 has stored.
WAIT_FOR_PREDECESSOR = """
  %first = icmp eq i64 %id, 0
  br i1 %first, label %store, label %wait
wait:
  %before = getelementptr i64, ptr %cell, i64 -1
  %seen = load atomic i64, ptr %before seq_cst, align 8
  %ready = icmp ne i64 %seen, 0
  br i1 %ready, label %store, label %wait
store:
  store atomic i64 1, ptr %cell seq_cst, align 8
"""

# A few thousand dependent additions, then out[id] += 1.
WORK = """
  br label %spin
spin:
  %i = phi i64 [ 0, %program ], [ %i.next, %spin ]
  %i.next = add i64 %i, 1
  %opaque = call i64 asm sideeffect "", "=r,0"(i64 %i.next)
  %again = icmp slt i64 %opaque, ITERATIONS
  br i1 %again, label %spin, label %store
store:
  %old = load i64, ptr %cell
  %new = add i64 %old, 1
  store i64 %new, ptr %cell
"""

# out[id] = the scratch address; every byte of scratch is written.
SCRATCH = """
  %address = ptrtoint ptr %scratch to i64
  store i64 %address, ptr %cell
  store i64 %id, ptr %scratch
"""

# out[id] = number of programs along each axis, packed, from the grid.
GRID = """
  %x = load i32, ptr %grid
  %y.at = getelementptr i32, ptr %grid, i64 1
  %y = load i32, ptr %y.at
  %z.at = getelementptr i32, ptr %grid, i64 2
  %z = load i32, ptr %z.at
  %xy = mul i32 %x, 1000
  %xy.sum = add i32 %xy, %y
  %xyz = mul i32 %xy.sum, 1000
  %sum = add i32 %xyz, %z
  %wide = sext i32 %sum to i64
  store i64 %wide, ptr %cell
"""


def load_kernel(program: str, *, scratch_bytes: int = 0, **constants: int) -> LoadedKernel:
    """A kernel with one argument, an array of int64, that runs `program` for every id."""
    for name, value in constants.items():
        program = program.replace(name, str(value))
    abi = KernelAbi("kernel", ("out",), (PointerType(I64),), (True,), scratch_bytes)
    return LoadedKernel(abi, assemble(_LOOP.format(program=program)))

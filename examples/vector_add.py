"""Where to start: add two photographs, number by number.

    python examples/vector_add.py

Look inside:

    blocklang ir examples/vector_add.py --from-run
    blocklang asm examples/vector_add.py --from-run
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_sample_image

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns


@bl.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: bl.constexpr):
    # A launch runs many *programs*, each the same function with another id. This one takes the elements
    # BLOCK * id, ..., BLOCK * id + BLOCK - 1. All names below stand for whole blocks of BLOCK numbers.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The last block sticks out over the end of the arrays. Lanes whose mask is False touch no memory.
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def launch(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Write x + y into `out`; all three are contiguous float32 arrays of one size."""
    block = 4096
    # As many programs as it takes to cover the arrays. The arrays are used in place; nothing is copied.
    add[(bl.cdiv(x.size, block),)](x, y, out, x.size, BLOCK=block)


def main() -> None:
    x = load_sample_image("china.jpg").astype(np.float32)
    y = load_sample_image("flower.jpg").astype(np.float32)
    out = np.empty_like(x)
    launch(x, y, out)

    # The sum of two pixel values is a small integer, which float32 holds exactly.
    error = np.abs(out - (x.astype(np.float64) + y)).max()
    print(f"vector add of {x.size:,} numbers: largest error {error} (allowed: 0)")
    assert error == 0

    into = np.empty_like(x)
    times = time_in_turns({"blocklang": lambda: launch(x, y, out), "NumPy": lambda: np.add(x, y, out=into)})
    print(f"median times (blocklang with up to {bl.get_num_threads()} threads):")
    print(format_times(times))


if __name__ == "__main__":
    main()

"""An autotuned row sum: which tile of a matrix is the fastest on this machine, for each shape.

    python examples/autotune.py
    blocklang tune examples/autotune.py

The first call for a shape measures all configs, in turns, and drops those that are clearly slower. What it
finds is kept on disk: the second run of this script measures nothing.
"""

from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl

CONFIGS = [bl.Config({"ROWS": rows, "COLS": cols}) for rows in (1, 8, 64) for cols in (16, 256, 1024)]


@bl.autotune(CONFIGS, key=["height", "width"])
@bl.jit
def add_row_sums(total_ptr, in_ptr, height, width, ROWS: bl.constexpr, COLS: bl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, width, COLS):
        cols = start + tl.arange(0, COLS)
        inside = (rows < height)[:, None] & (cols < width)[None, :]
        tile = tl.load(in_ptr + rows[:, None] * width + cols[None, :], mask=inside, other=0.0)
        total += tl.sum(tile, axis=1)
    # In place: were the array not restored while configs are measured, each call would add again.
    before = tl.load(total_ptr + rows, mask=rows < height, other=0.0)
    tl.store(total_ptr + rows, before + total, mask=rows < height)


def main() -> None:
    """Tune for two shapes, check the sums, and print what was found."""
    generator = np.random.default_rng(0)
    for height, width in ((1000, 1000), (20000, 50)):
        matrix = generator.random((height, width), np.float32)
        totals = np.ones(height, np.float32)
        add_row_sums[lambda meta: (bl.cdiv(meta["height"], meta["ROWS"]),)](totals, matrix, height, width)
        np.testing.assert_allclose(totals, 1 + matrix.sum(axis=1, dtype=np.float64), rtol=1e-5)
        print(add_row_sums.report)


if __name__ == "__main__":
    main()

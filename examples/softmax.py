"""Softmax over rows: how much does each handwritten digit look like each of the others?

    python examples/softmax.py

The input is real: 1797 scanned digits of 8x8 pixels. Row i of the scores compares digit i with all digits;
softmax turns the row into weights that sum to 1. A row has 1797 columns, which is no power of two.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns


@bl.jit
def softmax(out_ptr, x_ptr, n_cols, out_stride, x_stride, BLOCK: bl.constexpr):
    # One program, one row. The stride is the distance between two rows in memory, counted in elements.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    # Lanes past the end of the row read -inf: they never are the maximum, and exp(-inf) adds 0 to the sum.
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf"))
    # Without subtracting the maximum, exp would overflow for large scores. The quotient stays the same.
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + cols, numerator / denominator, mask=mask)


def launch(x: np.ndarray, out: np.ndarray) -> None:
    """Write the softmax of each row of `x` into `out`; rows may be apart, their elements are adjacent."""
    rows, cols = x.shape
    x_stride, _ = bl.strides(x)
    out_stride, _ = bl.strides(out)
    softmax[(rows,)](out, x, cols, out_stride, x_stride, BLOCK=bl.next_power_of_2(cols))


def softmax_in_numpy(x: np.ndarray) -> np.ndarray:
    """The same in the precision of `x`."""
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


def main() -> None:
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels - pixels.mean(axis=0)).astype(np.float32)
    scores = pixels @ pixels.T / np.float32(8)
    np.fill_diagonal(scores, -np.inf)  # a digit does not vote for itself
    weights = np.empty_like(scores)
    launch(scores, weights)

    error = np.abs(weights - softmax_in_numpy(scores.astype(np.float64))).max()
    rows, cols = scores.shape
    print(f"softmax of {rows} rows of {cols}: largest error {error:.1e} (allowed: 1e-6)")
    assert error <= 1e-6

    votes = weights @ np.eye(10, dtype=np.float32)[labels]
    recognised = np.mean(votes.argmax(axis=1) == labels)
    print(f"digits recognised by the weighted vote of the others: {recognised:.1%}")

    times = time_in_turns(
        {"blocklang": lambda: launch(scores, weights), "NumPy": lambda: softmax_in_numpy(scores)}
    )
    print(f"median times (blocklang with up to {bl.get_num_threads()} threads):")
    print(format_times(times))


if __name__ == "__main__":
    main()

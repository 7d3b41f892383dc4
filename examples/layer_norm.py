"""Layer norm over the patches of two photographs, as a vision transformer sees them.

    python examples/layer_norm.py

Each row is a patch of 16x16 pixels in three colours. The kernel brings it to mean 0 and variance 1, then
scales and shifts every column.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_sample_images

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns

PATCH = 16


@bl.jit
def layer_norm(out_ptr, x_ptr, weight_ptr, bias_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    # Lanes past the end hold 0 and would now become -mean: they must not count in the variance.
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    scale = 1 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, centred * scale * weight + bias, mask=mask)


def launch(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, out: np.ndarray, eps: float = 1e-5) -> None:
    """Write the layer norm of each row of `x` into `out`; both have the same layout."""
    rows, cols = x.shape
    layer_norm[(rows,)](out, x, weight, bias, cols, bl.strides(x)[0], eps, BLOCK=bl.next_power_of_2(cols))


def layer_norm_in_numpy(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """The same in the precision of `x`."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(eps)) * weight + bias


def cut_patches(photograph: np.ndarray) -> np.ndarray:
    """One row per patch of PATCH x PATCH pixels; the rest at the right and lower edge is left out."""
    height, width, colours = photograph.shape
    rows, cols = height // PATCH, width // PATCH
    patches = photograph[: rows * PATCH, : cols * PATCH].reshape(rows, PATCH, cols, PATCH, colours)
    return patches.swapaxes(1, 2).reshape(rows * cols, PATCH * PATCH * colours)


def main() -> None:
    x = np.concatenate([cut_patches(image) for image in load_sample_images().images]).astype(np.float32)
    random = np.random.default_rng(0)
    weight = random.normal(1, 0.1, size=x.shape[1:]).astype(np.float32)
    bias = random.normal(0, 0.1, size=x.shape[1:]).astype(np.float32)
    out = np.empty_like(x)
    launch(x, weight, bias, out)

    error = np.abs(out - layer_norm_in_numpy(x.astype(np.float64), weight, bias)).max()
    print(f"layer norm of {x.shape[0]} rows of {x.shape[1]}: largest error {error:.1e} (allowed: 2e-5)")
    assert error <= 2e-5

    times = time_in_turns(
        {
            "blocklang": lambda: launch(x, weight, bias, out),
            "NumPy": lambda: layer_norm_in_numpy(x, weight, bias),
        }
    )
    print(f"median times (blocklang with up to {bl.get_num_threads()} threads):")
    print(format_times(times))


if __name__ == "__main__":
    main()

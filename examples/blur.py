"""A 3x3 blur of a photograph; writes the picture before and after into `out/`.

    python examples/blur.py

Each pixel becomes the mean of the nine pixels around it, colour by colour. At the edge of the picture some
neighbours do not exist: masks leave them out of the sum and of the count.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import format_times, time_in_turns

ROUNDS = 3


@bl.jit
def blur(out_ptr, in_ptr, height, width, COLOURS: bl.constexpr, BLOCK_H: bl.constexpr, BLOCK_W: bl.constexpr):
    # A program takes a tile of the picture. A row in memory holds width * COLOURS bytes: red, green, blue,
    # red, and so on. The neighbour of the same colour stands COLOURS bytes further on.
    row_bytes = width * COLOURS
    rows = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    cols = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    total = tl.zeros((BLOCK_H, BLOCK_W), dtype=tl.float32)
    count = tl.zeros((BLOCK_H, BLOCK_W), dtype=tl.float32)
    # static_range unrolls: the kernel contains nine loads, each with its own constant shift.
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            r = rows + dy
            c = cols + dx * COLOURS
            inside = (r >= 0) & (r < height) & (c >= 0) & (c < row_bytes)
            total += tl.load(in_ptr + r * row_bytes + c, mask=inside, other=0).to(tl.float32)
            count += inside.to(tl.float32)
    # A conversion to an integer cuts off the fraction; adding a half first rounds to the nearest.
    mean = (total / count + 0.5).to(tl.uint8)
    tl.store(out_ptr + rows * row_bytes + cols, mean, mask=(rows < height) & (cols < row_bytes))


def launch(picture: np.ndarray, out: np.ndarray) -> None:
    """Write the blurred `picture` (height x width x colours, uint8, contiguous) into `out`."""
    height, width, colours = picture.shape
    block_h, block_w = 16, 256
    grid = (bl.cdiv(width * colours, block_w), bl.cdiv(height, block_h))
    blur[grid](out, picture, height, width, COLOURS=colours, BLOCK_H=block_h, BLOCK_W=block_w)


def blur_in_numpy(picture: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """The same, computed in `dtype`; the edge is a frame of zeros that is not counted."""
    height, width, _ = picture.shape
    framed: np.ndarray = np.pad(picture.astype(dtype), ((1, 1), (1, 1), (0, 0)))
    total = sum(framed[y : y + height, x : x + width] for y in range(3) for x in range(3))
    rows = np.pad(np.full(height - 2, 3), 1, constant_values=2)
    cols = np.pad(np.full(width - 2, 3), 1, constant_values=2)
    count: np.ndarray = np.outer(rows, cols)[:, :, None].astype(dtype)
    return (total / count + dtype(0.5)).astype(np.uint8)


def main() -> None:
    before = load_sample_image("flower.jpg")
    after = before.copy()
    for _ in range(ROUNDS):
        blurred = np.empty_like(after)
        launch(after, blurred)
        wrong = np.count_nonzero(blurred != blur_in_numpy(after, np.float64))
        print(f"blur of {'x'.join(map(str, after.shape))} bytes: {wrong} differ (allowed: 0)")
        assert wrong == 0
        after = blurred

    out = Path("out")
    out.mkdir(exist_ok=True)
    for name, picture in {"before": before, "after": after}.items():
        Image.fromarray(picture).save(out / f"blur_{name}.png")
        print(f"wrote {out / f'blur_{name}.png'}")

    times = time_in_turns(
        {"blocklang": lambda: launch(before, blurred), "NumPy": lambda: blur_in_numpy(before)}
    )
    print(f"median times (blocklang with up to {bl.get_num_threads()} threads):")
    print(format_times(times))


if __name__ == "__main__":
    main()

"""Arrays in the memory of an accelerator that is not here: digits scaled to one brightness on a Trainium 2.

    python examples/device_memory.py [DEVICE]

The program is what it would be with the chip: arrays are copied to the device, kernels work on them there,
and the result is copied back. A strict emulation holds it to that: an array left on the host is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import blocklang as bl
import blocklang.language as tl


@bl.jit
def normalise(out_ptr, x_ptr, n_cols, BLOCK: bl.constexpr, MASKED: bl.constexpr):
    # One program, one row: divide it by its length, the root of the sum of its squares.
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    scaled = x / tl.sqrt(tl.sum(x * x, axis=0))
    if MASKED:
        tl.store(out_ptr + row * n_cols + cols, scaled, mask=cols < n_cols)
    else:  # a mistake: the last lanes store past the end of the row
        tl.store(out_ptr + row * n_cols + cols, scaled)


def launch(device: str, x: Any, out: Any, masked: bool = True) -> dict[str, Any]:
    """Write the rows of `x`, scaled to length 1, into `out`, and give the report of what was moved."""
    rows, cols = x.shape
    with bl.emulate(device, strict=True) as run:
        normalise[(rows,)](out, x, cols, BLOCK=bl.next_power_of_2(cols + 1), MASKED=masked)
    return run.to_dict()


def show_mistake(what: str, *arguments: Any, **options: Any) -> None:
    print(f"\n{what}:")
    try:
        launch(*arguments, **options)
    except (bl.LaunchError, bl.DeviceMemoryError) as error:
        print(error)


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "trn2"
    digits = load_digits().data.astype(np.float32)

    dev = bl.device(name)
    x = dev.to_device(digits)
    out = dev.empty(x.shape, x.dtype)
    moved = launch(name, x, out)["memory"]["global"]
    exact = digits / np.linalg.norm(digits.astype(np.float64), axis=1, keepdims=True)
    error = np.abs(out.numpy() - exact).max()
    print(f"{len(digits)} digits scaled on {name}: largest error {error:.1e} (allowed: 1e-6)")
    print(f"global memory: {moved['bytes_read']} bytes read, {moved['bytes_written']} written")
    print(f"arrays: {dev.memory().bytes_in_use} bytes of {dev.memory().capacity_bytes}")
    assert error <= 1e-6

    show_mistake("An array that was left on the host", name, digits, out)
    show_mistake("A kernel that stores past the end of its array", name, x, out, masked=False)


if __name__ == "__main__":
    main()

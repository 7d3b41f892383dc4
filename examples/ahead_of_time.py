"""Compile a kernel ahead of time: a library for C, and a wheel for Python without blocklang.

    python examples/ahead_of_time.py

The kernel makes a photograph grey. `blocklang build` makes `out/libgrey.so`, `out/grey.h` and a wheel of it.
A C program and a Python process in which blocklang cannot be imported then do the same work, and give the
same bytes. It takes a C compiler; where there is none, `pip install 'blocklang[build]'` brings one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_sample_image

import blocklang as bl
import blocklang.language as tl
from blocklang.aot import find_linker

OUT = Path("out")


@bl.jit
def grey(rgb, out, pixels, BLOCK: bl.constexpr):
    """The luminance of each pixel of a picture (ITU-R BT.709), from 0 to 255.

    rgb has 3 bytes a pixel, out one float. The grid is cdiv(pixels, BLOCK) programs along x.
    """
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < pixels
    red = tl.load(rgb + 3 * pixel, mask=mask).to(tl.float32)
    green = tl.load(rgb + 3 * pixel + 1, mask=mask).to(tl.float32)
    blue = tl.load(rgb + 3 * pixel + 2, mask=mask).to(tl.float32)
    tl.store(out + pixel, 0.2126 * red + 0.7152 * green + 0.0722 * blue, mask=mask)


# GREY_BLOCK is from the header: the grid follows when the library is built with another BLOCK.
C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "grey.h"

int main(int count, char **arguments)
{
    int pixels = count == 2 ? atoi(arguments[1]) : 0;
    unsigned char *rgb = malloc(3 * (size_t)pixels);
    float *out = malloc(sizeof(float) * (size_t)pixels);
    if (!rgb || !out || fread(rgb, 3, (size_t)pixels, stdin) != (size_t)pixels)
        return 2;
    int status = grey((pixels + GREY_BLOCK - 1) / GREY_BLOCK, 1, 1, rgb, out, pixels, 0);
    if (status != BLOCKLANG_OK) {
        fprintf(stderr, "%s\\n", grey_strerror(status));
        return 1;
    }
    fwrite(out, sizeof(float), (size_t)pixels, stdout);
    fprintf(stderr, "the C program ran the code for %s\\n", grey_cpu_level());
    return 0;
}
"""

# What the wheel's users write. The first lines make sure that this process has no compiler.
PYTHON_PROGRAM = """
import sys
sys.modules["blocklang"] = sys.modules["llvmlite"] = None

import time

import numpy as np
from grey import BLOCK, cpu_level, grey

rgb = np.load("rgb.npy")
out = np.empty(rgb.shape[:2], np.float32)
grid = -(-out.size // BLOCK)
weights = np.array([0.2126, 0.7152, 0.0722], np.float32)
times = {"blocklang": [], "NumPy": []}
for _ in range(30):
    start = time.perf_counter()
    grey(rgb, out, out.size, grid=grid)
    middle = time.perf_counter()
    rgb @ weights
    times["blocklang"].append(middle - start)
    times["NumPy"].append(time.perf_counter() - middle)
np.save("grey.npy", out)
print(f"the Python process ran the code for {cpu_level()}; median times:")
for name, each in times.items():
    print(f"  {name:<10}{np.median(each) * 1e3:8.3f} ms")
"""


def run(command: Sequence[str | Path], **options: Any) -> bytes:
    """The standard output of a command that must succeed."""
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, **options).stdout


def build() -> None:
    """Make the library, the header and the wheel, and unpack the wheel where pip would."""
    command: list[str | Path] = [sys.executable, "-m", "blocklang", "build", __file__, "-o", OUT, "--wheel"]
    print(run([*command, "--sig", "*u8,*fp32,i32", "-D", "BLOCK=4096"]).decode(), end="")
    (wheel,) = OUT.glob("grey-0.1.0-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(OUT / "site")


def grey_in_c(rgb: np.ndarray) -> np.ndarray:
    (OUT / "main.c").write_text(C_PROGRAM, encoding="utf-8")
    program = OUT.resolve() / "main"
    library = [f"-L{OUT}", "-lgrey", f"-Wl,-rpath,{OUT.resolve()}"]
    run([*find_linker(), "-O2", OUT / "main.c", "-o", program, *library])
    return np.frombuffer(run([program, str(rgb.size // 3)], input=rgb.tobytes()), np.float32)


def grey_in_python(rgb: np.ndarray) -> np.ndarray:
    np.save(OUT / "rgb.npy", rgb)
    environment = {**os.environ, "PYTHONPATH": str((OUT / "site").resolve())}
    print(run([sys.executable, "-c", PYTHON_PROGRAM], cwd=OUT, env=environment).decode(), end="")
    return np.load(OUT / "grey.npy")


def main() -> None:
    find_linker()  # says what to install if there is none
    build()
    rgb = np.ascontiguousarray(load_sample_image("china.jpg"))
    in_c, in_python = grey_in_c(rgb), grey_in_python(rgb)
    jitted = np.empty(rgb.shape[:2], np.float32)
    grey[(bl.cdiv(jitted.size, 4096),)](rgb, jitted, jitted.size, BLOCK=4096)
    assert in_c.tobytes() == in_python.tobytes() == jitted.tobytes()
    print(f"{rgb.shape[0]} x {rgb.shape[1]} pixels: C, Python and the jit gave the same bytes")
    error = np.abs(in_python - rgb @ np.array([0.2126, 0.7152, 0.0722])).max()
    print(f"largest error {error:.1e} (allowed: 1e-4)")
    assert error <= 1e-4


if __name__ == "__main__":
    main()

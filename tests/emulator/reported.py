"""Kernels that the tests of reports profile: a product and a softmax, both small, and two to count."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.emulation.profile import Profile
from blocklang.target import Device, read_device


@bl.jit
def product(c, a, b, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    width = tl.num_programs(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, B):
        ks = k + tl.arange(0, B)
        left = tl.load(a + m[:, None] * K + ks[None, :])
        right = tl.load(b + ks[:, None] * width + n[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * width + n[None, :], acc)


@bl.jit
def softmax(out, x, n, B: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, B)
    mask = columns < n
    scores = tl.load(x + row * n + columns, mask, other=-float("inf"))
    powers = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(out + row * n + columns, powers / tl.sum(powers, axis=0), mask)


@bl.jit
def rounds(out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(out + pid * B + tl.arange(0, B))
    for i in range(pid, n):
        x = x * 0.5
        if i % 2 == 0:
            x = tl.math.fma(x, x, x)
    tl.store(out + pid * B + tl.arange(0, B), x)


@bl.jit
def counting(out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, i * 3 + 1)


def launch_product(size: int = 256) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, size, size), dtype=np.float32)
    c = np.zeros_like(a)
    product[(size // 128, size // 128)](c, a, b, size, M=128, N=128, B=64)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def launch_softmax(rows: int = 200) -> None:
    x = np.random.default_rng(0).random((rows, 300), dtype=np.float32)
    out = np.zeros_like(x)
    softmax[(rows,)](out, x, 300, B=512)
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-5)


def matmul_profile(device: Device | str) -> Profile:
    """A product on a device."""
    with bl.emulate(device) as profile:
        launch_product()
    return profile


def softmax_profile(device: Device | str) -> Profile:
    """A softmax on a device."""
    with bl.emulate(device) as profile:
        launch_softmax()
    return profile


UNTIMED = """
name = "mine"
title = "a chip that does not exist"
[memory.global]
hardware = "DRAM"
bytes = { value = "1 GiB", source = "invented" }
[memory.scratch]
hardware = "SRAM"
bytes = { value = "16 MiB", source = "invented" }
"""


def untimed() -> Device:
    """A device of which only the memory is known."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "mine.toml"
        file.write_text(UNTIMED, encoding="utf-8")
        return read_device(file)

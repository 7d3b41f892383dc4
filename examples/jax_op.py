"""A kernel as an operator of JAX: layer norm under jit, vmap, grad, and over two devices.

    python examples/jax_op.py

The kernel is called by XLA itself, on its buffers in place and on its threads; Python is not asked while a
program runs. A batch (`jax.vmap`) is more programs of the same launch. `jax.shard_map` gives each device its
rows; the two devices are this machine's CPU, twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable

# Before JAX starts: two devices, to have something to spread over.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from sklearn.datasets import load_digits

import blocklang as bl
import blocklang.language as tl

EPSILON = 1e-5


@bl.jit
def normalise(out, scale, x, columns, eps, BLOCK: bl.constexpr):
    # One program, one row: minus its mean, over its standard deviation. The latter's inverse is a result too.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    values = tl.load(x + row * columns + i, mask, other=0)
    centred = tl.where(mask, values - tl.sum(values, 0) / columns, 0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    tl.store(out + row * columns + i, centred * inverse, mask)
    tl.store(scale + row, inverse)


@bl.jit
def normalise_gradient(out, grad, y, scale, columns, BLOCK: bl.constexpr):
    # With y the result and g its gradient: (g - mean(g) - y mean(g y)) / deviation.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    g = tl.load(grad + row * columns + i, mask, other=0)
    result = tl.load(y + row * columns + i, mask, other=0)
    inner = tl.sum(g * result, 0) / columns
    change = (g - tl.sum(g, 0) / columns - result * inner) * tl.load(scale + row)
    tl.store(out + row * columns + i, change, mask)


# What each parameter is; x is left, and is the input.
layer_norm = bl.jax.op(
    normalise,
    grid=lambda meta: (meta["x"].shape[0],),
    outputs={"out": "x", "scale": lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype)},
    columns=lambda x: x.shape[1],
    eps=EPSILON,
    BLOCK=lambda columns: bl.next_power_of_2(columns),
)
layer_norm_gradient = bl.jax.op(
    normalise_gradient,
    grid=lambda meta: (meta["y"].shape[0],),
    outputs={"out": "y"},
    columns=lambda y: y.shape[1],
    BLOCK=lambda columns: bl.next_power_of_2(columns),
)


# Of the two results, `scale` is there for the backward alone: its own gradient (grad_1) is not asked for.
@layer_norm.backward
def layer_norm_backward(grad_0, output_0, output_1):
    return layer_norm_gradient(grad_0, output_0, output_1)


def norm(x: jax.Array) -> jax.Array:
    """Layer norm of the rows of a matrix."""
    return layer_norm(x)[0]


def norm_in_jax(x: jax.Array) -> jax.Array:
    """The same in JAX's own operators."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)


def loss(norm: Callable[..., jax.Array], x: jax.Array) -> jax.Array:
    return (norm(x) ** 3).sum()


def largest(one: jax.Array, other: jax.Array) -> float:
    return float(jnp.abs(one - other).max())


def main() -> None:
    pixels, _ = load_digits(return_X_y=True)
    x = jnp.asarray(pixels[:1796], jnp.float32)

    exact = pixels[:1796] - pixels[:1796].mean(1, keepdims=True)
    exact /= np.sqrt((exact**2).mean(1, keepdims=True) + EPSILON)
    error = float(np.abs(np.asarray(jax.jit(norm)(x)) - exact).max())
    print(f"jit: layer norm of {x.shape}, largest error {error:.1e} (allowed: 1e-5)")
    assert error <= 1e-5

    batch = x.reshape(4, 449, 64)
    error = largest(jax.jit(jax.vmap(norm))(batch), jax.vmap(norm_in_jax)(batch))
    print(f"vmap: {batch.shape}, largest difference to JAX {error:.1e} (allowed: 1e-5)")
    assert error <= 1e-5

    wanted = jax.grad(lambda x: loss(norm_in_jax, x))(x)
    error = largest(jax.jit(jax.grad(lambda x: loss(norm, x)))(x), wanted)
    print(
        f"grad: largest difference to JAX {error:.1e} (allowed: 1e-3, of {float(jnp.abs(wanted).max()):.0f})"
    )
    assert error <= 1e-3

    devices = jax.devices()[:2]
    rows = PartitionSpec("rows")
    shared = jax.shard_map(norm, mesh=Mesh(np.array(devices), ("rows",)), in_specs=rows, out_specs=rows)
    result = jax.jit(shared)(x)
    assert largest(result, norm(x)) == 0
    print(f"shard_map: over {len(result.sharding.device_set)} devices, the same to the bit")


if __name__ == "__main__":
    main()

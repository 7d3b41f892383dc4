"""`bl.jax.op`: kernels as operators of JAX, through XLA's foreign function interface."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.architecture.rooms import ROOT
from tests.frameworks import kernels

jax = pytest.importorskip("jax", reason="JAX is an extra: pip install 'blocklang[jax]'")
jnp = jax.numpy


def flat_grid(meta: Any) -> tuple[int]:
    return (bl.cdiv(meta["n"], meta["BLOCK"]),)


add = bl.jax.op(kernels.add, grid=flat_grid, outputs={"out": "x"}, n=lambda x: x.size, BLOCK=64)
multiply = bl.jax.op(kernels.multiply, grid=flat_grid, outputs={"out": "x"}, n=lambda x: x.size, BLOCK=64)
increment = bl.jax.op(kernels.increment, grid=flat_grid, updates=("x",), n=lambda x: x.size, BLOCK=64)
softmax = bl.jax.op(
    kernels.softmax,
    grid=lambda meta: (meta["x"].shape[0],),
    outputs={"out": "x"},
    n=lambda x: x.shape[1],
    stride=lambda x: x.shape[1],
    BLOCK=lambda n: bl.next_power_of_2(n),
)
softmax_gradient = bl.jax.op(
    kernels.softmax_gradient,
    grid=lambda meta: (meta["y"].shape[0],),
    outputs={"out": "y"},
    n=lambda y: y.shape[1],
    BLOCK=lambda n: bl.next_power_of_2(n),
)
statistics = bl.jax.op(
    kernels.sum_and_maximum,
    grid=lambda meta: (meta["x"].shape[0],),
    outputs={
        "total": lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype),
        "largest": lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype),
    },
    n=lambda x: x.shape[1],
    BLOCK=lambda n: bl.next_power_of_2(n),
)


@softmax.backward
def _(grad: Any, output: Any) -> Any:
    return softmax_gradient(grad, output)


@add.backward
def _(grad: Any) -> Any:
    return grad, grad


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return jnp.asarray(np.random.default_rng(sum(shape)).random(shape).astype(dtype))


def test_jit_and_eager() -> None:
    x, y = random(5, 37), random(5, 37)
    for call in (add, jax.jit(add)):
        assert jnp.array_equal(call(x, y), x + y)
    for call in (softmax, jax.jit(softmax)):
        assert jnp.allclose(call(x), jax.nn.softmax(x), atol=1e-6)
    total, largest = jax.jit(statistics)(x)
    assert jnp.allclose(total, x.sum(1))
    assert jnp.array_equal(largest, x.max(1))
    assert add(x[:0], y[:0]).shape == (0, 37)


def test_numbers_are_values() -> None:
    x = random(5)
    assert jnp.array_equal(multiply(x, 3.0), x * 3)
    assert jnp.array_equal(jax.jit(lambda x: multiply(x, factor=0.5))(x), x * 0.5)
    assert jnp.array_equal(multiply(x, np.float32(2)), x * 2)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "float16", "bfloat16", "float8_e4m3fn"])
def test_element_types(dtype: str) -> None:
    x = jnp.arange(7).astype(dtype)
    if dtype.startswith("float8"):
        assert increment(x.astype(jnp.float16), 1.0).tolist() == [1, 2, 3, 4, 5, 6, 7]
    else:
        assert add(x, x).tolist() == [0, 2, 4, 6, 8, 10, 12]
        assert add(x, x).dtype == x.dtype


def test_updates_leave_what_was_passed() -> None:
    x = random(100)
    wanted = np.asarray(x) + 2
    before = np.array(x)
    assert np.array_equal(increment(x, 2.0), wanted)
    assert np.array_equal(x, before)
    twice = jax.jit(lambda x: (increment(increment(x, 1.0), 2.0), x))
    changed, kept = twice(x)
    assert jnp.allclose(changed, x + 3)
    assert jnp.array_equal(kept, x)
    donated = jax.jit(lambda x: increment(x, 1.0), donate_argnums=0)
    assert jnp.allclose(donated(x + 0), x + 1)


@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (2, None), (None, 1)])
def test_vmap(axes: Any) -> None:
    def batched(axis: int | None) -> Any:
        if axis is None:
            return random(6, 5)
        return jnp.moveaxis(random(3, 6, 5), 0, axis)

    x, y = map(batched, axes)
    for wrap in (lambda f: f, jax.jit):
        got = wrap(jax.vmap(add, in_axes=axes))(x, y)
        assert jnp.array_equal(got, jax.vmap(jnp.add, in_axes=axes)(x, y))


def test_vmap_within_vmap() -> None:
    x, y = random(3, 4, 6, 5), random(4, 6, 5)
    both = jax.jit(jax.vmap(jax.vmap(add, in_axes=(0, None)), in_axes=(1, 0)))
    assert jnp.array_equal(both(x, y), jnp.swapaxes(x, 0, 1) + y[:, None])
    assert jnp.allclose(jax.vmap(jax.vmap(softmax))(x), jax.nn.softmax(x), atol=1e-6)
    moved = jax.vmap(lambda by: increment(y, 1.0) + by)(jnp.arange(3.0))
    assert jnp.allclose(moved, y + 1 + jnp.arange(3.0)[:, None, None, None])
    changed = jax.vmap(lambda z: increment(z, 1.0))(y)
    assert jnp.allclose(changed, y + 1)


def test_grad() -> None:
    x = random(5, 37)

    def loss(softmax: Any, x: Any) -> Any:
        return (softmax(x * 2) ** 2).sum()

    wanted = jax.grad(lambda x: loss(jax.nn.softmax, x))(x)
    for wrap in (lambda f: f, jax.jit):
        got = wrap(jax.grad(lambda x: loss(softmax, x)))(x)
        assert jnp.allclose(got, wanted, atol=1e-6)
    many = random(3, 5, 37)
    assert jnp.allclose(
        jax.vmap(jax.grad(lambda x: loss(softmax, x)))(many),
        jax.vmap(jax.grad(lambda x: loss(jax.nn.softmax, x)))(many),
        atol=1e-6,
    )
    a, b = jax.grad(lambda x, y: add(x, y).sum(), argnums=(0, 1))(x, x)
    assert jnp.array_equal(a, jnp.ones_like(x))
    assert jnp.array_equal(b, a)


def test_gradient_against_differences() -> None:
    from jax.test_util import check_grads

    check_grads(softmax, (random(3, 5),), order=1, modes=("rev",), rtol=1e-2, atol=1e-2)


def test_no_gradient_is_lost_silently() -> None:
    with pytest.raises(bl.LaunchError, match="operator multiply, which has none") as info:
        jax.grad(lambda x: multiply(x, 2.0).sum())(random(3))
    assert "multiply = bl.jax.op(" in str(info.value)


def test_scan_and_remat() -> None:
    x = random(70)
    got, _ = jax.jit(lambda x: jax.lax.scan(lambda c, _: (add(c, x), None), x, None, length=5))(x)
    assert jnp.allclose(got, 6 * x)
    assert jnp.allclose(jax.grad(lambda x: jax.checkpoint(softmax)(x)[0, 0])(random(2, 3))[1], 0)


@bl.jit
def halve(x: Any, out: Any, n: Any, BLOCK: bl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 0.5, i < n)


def test_subnormals_are_kept() -> None:
    """XLA's threads flush them to zero; a kernel does not, and leaves the mode as it was."""
    op = bl.jax.op(halve, grid=(1,), outputs={"out": "x"}, n=lambda x: x.size, BLOCK=8)
    tiny = np.float32(2e-40)
    assert (
        np.asarray(jax.jit(op)(np.full(4, tiny, np.float32))).tolist() == [float(tiny * np.float32(0.5))] * 4
    )


@bl.jit
def spread(x: Any, out: Any, n: Any, rounds: Any, BLOCK: bl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    for _ in range(rounds):
        v = v * 0.5 + 1.0
    tl.store(out + i, v, i < n)


def test_many_programs_on_many_threads() -> None:
    op = bl.jax.op(spread, grid=flat_grid, outputs={"out": "x"}, n=lambda x: x.size, rounds=60, BLOCK=128)
    x = random(300_001)
    call = jax.jit(op)
    for _ in range(20):
        assert jnp.allclose(call(x), 2.0, atol=1e-6)


@bl.jit
def accumulate(x: Any, total: Any, n: Any, BLOCK: bl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, i < n, other=0), 0))


def test_atomics_into_an_update() -> None:
    op = bl.jax.op(accumulate, grid=flat_grid, updates=("total",), n=lambda x: x.size, BLOCK=32)
    x = jnp.arange(1000, dtype=jnp.int32)
    assert op(x, jnp.zeros((), jnp.int32)) == 499500
    many = jnp.stack([x, 2 * x, 3 * x])
    got = jax.jit(jax.vmap(op, in_axes=(0, None)))(many, jnp.zeros((), jnp.int32))
    assert got.tolist() == [499500, 999000, 1498500]


@bl.jit
def product(a: Any, b: Any, out: Any, SIZE: bl.constexpr) -> None:
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    at = i * SIZE + j
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_scratch_memory() -> None:
    op = bl.jax.op(product, grid=(1,), outputs={"out": "a"}, SIZE=64)
    a, b = random(64, 64), random(64, 64).T
    got = jax.jit(jax.vmap(op, in_axes=(0, None)))(jnp.stack([a, a + 1, a + 2, a + 3]), b)
    assert jnp.allclose(got, jnp.stack([a + k for k in range(4)]) @ b, rtol=1e-5)


@bl.jit
def tiled_product(a: Any, b: Any, out: Any, SIZE: bl.constexpr, TILE: bl.constexpr) -> None:
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    k = tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, SIZE, TILE):
        left = tl.load(a + i * SIZE + start + k[None, :])
        right = tl.load(b + (start + k[:, None]) * SIZE + j)
        total = tl.dot(left, right, total)
    tl.store(out + i * SIZE + j, total)


def test_items_of_a_batch_share_no_packed_tiles() -> None:
    """Programs of a launch share the tiles that they pack; those of two items are not the same."""
    op = bl.jax.op(tiled_product, grid=(4, 4), outputs={"out": "a"}, SIZE=256, TILE=64)
    a, b = random(5, 256, 256), random(5, 256, 256) + 1
    for _ in range(3):
        got = jax.jit(jax.vmap(op))(a, b)
        assert jnp.allclose(got, a @ b, rtol=1e-4)


@bl.jit
def shout(x: Any, out: Any) -> None:
    tl.device_print("value", tl.load(x))
    tl.store(out, tl.load(x) + 1)


def test_what_prints_or_is_interpreted_goes_through_python(capfd: pytest.CaptureFixture[str]) -> None:
    for kernel in (shout, bl.jit(interpret=True)(shout.fn)):
        op = bl.jax.op(kernel, grid=(1,), outputs={"out": "x"})
        got = jax.jit(jax.vmap(op))(jnp.arange(3.0).reshape(3, 1))
        assert got.tolist() == [[1], [2], [3]]
        assert capfd.readouterr().out.count("value") == 3


def test_a_wrong_element_type_points_to_the_call() -> None:
    with pytest.raises(bl.LaunchError, match="complex64") as info:
        jax.jit(add)(jnp.ones(3, jnp.complex64), jnp.ones(3))
    assert "jax.jit(add)(jnp.ones(3, jnp.complex64), jnp.ones(3))" in str(info.value)
    with pytest.raises(bl.CompilationError) as compilation:
        multiply(random(3), jnp.ones(3))
    assert "called at test_jax_op.py" in str(compilation.value)
    with pytest.raises(bl.LaunchError, match="missing a required argument") as info:
        add(random(3))
    assert "        add(random(3))".strip() in str(info.value)
    with pytest.raises(bl.LaunchError, match="which is no array"):
        add(random(3), "text")


def test_unknown_shapes_are_refused() -> None:
    from jax import export

    (n,) = export.symbolic_shape("n")
    with pytest.raises(bl.LaunchError, match="not known while tracing") as info:
        export.export(jax.jit(lambda x: add(x, x)))(jax.ShapeDtypeStruct((n,), np.float32))
    assert "lambda x: add(x, x)" in str(info.value)


def test_a_program_of_another_process_is_refused(tmp_path: Any) -> None:
    pytest.importorskip("flatbuffers", reason="JAX keeps exported programs in its format")
    from jax import export

    check = export.DisabledSafetyCheck.custom_call("blocklang_launch")
    made = export.export(jax.jit(add), disabled_checks=[check])(random(3), random(3))
    (tmp_path / "kept").write_bytes(made.serialize())
    script = """
        import sys, jax, numpy as np, blocklang as bl
        from jax import export
        from tests.frameworks import kernels
        from blocklang.jax.calls import _handler
        _handler()
        call = export.deserialize(bytearray(open(sys.argv[1], "rb").read())).call
        x = np.ones(3, np.float32)
        try:
            call(x, x)
        except Exception as error:
            print("not compiled" in str(error))
        add = bl.jax.op(kernels.add, grid=lambda m: (bl.cdiv(m["n"], m["BLOCK"]),), outputs={"out": "x"},
            n=lambda x: x.size, BLOCK=64)
        add(x, x)
        print(call(x, x))
    """
    assert run(script, str(tmp_path / "kept")) == "True\n[2. 2. 2.]\n"


def test_wrong_roles() -> None:
    with pytest.raises(bl.LaunchError, match="arrays of JAX do not change"):
        bl.jax.op(kernels.multiply, grid=(1,), outputs={"x": "out"}, n=1, factor=1.0, BLOCK=1)(random(1))
    with pytest.raises(bl.LaunchError, match="needs a grid"):
        bl.jax.op(kernels.add, outputs={"out": "x"}, n=1, BLOCK=1)
    with pytest.raises(bl.LaunchError, match="asks for 'weight'"):
        add.backward(lambda grad, weight: grad)
    with pytest.raises(bl.LaunchError, match="not of a function"):
        bl.jax.op(flat_grid, grid=(1,))


def test_arrays_of_jax_are_read_only_arguments_of_launches() -> None:
    x = random(10)
    out = np.zeros(10, np.float32)
    kernels.add[(1,)](x, x, out, 10, BLOCK=16)
    assert np.array_equal(out, x + x)
    with pytest.raises(bl.LaunchError, match="read-only"):
        kernels.increment[(1,)](x, 10, 1.0, BLOCK=16)


def test_threads_call_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    call = jax.jit(lambda x: add(softmax(x), x))
    rows = [random(k + 1, 37) for k in range(8)]
    wanted = [jax.nn.softmax(x) + x for x in rows]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for got, x in zip(pool.map(call, rows), wanted, strict=True):
                assert jnp.allclose(got, x, atol=1e-6)


def run(script: str, *arguments: str) -> str:
    import textwrap

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
            "JAX_PLATFORMS": "cpu",
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_shard_map_over_two_devices() -> None:
    script = """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, PartitionSpec as P
        from tests.frameworks.test_jax_op import add, softmax
        assert len(jax.devices()) == 2
        mesh = Mesh(np.array(jax.devices()), ("rows",))
        x = jnp.asarray(np.random.default_rng(0).random((6, 37), np.float32))
        shard = lambda f: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("rows"), out_specs=P("rows")))
        got = shard(lambda x: add(softmax(x), x))(x)
        assert len(got.sharding.device_set) == 2
        assert jnp.allclose(got, jax.nn.softmax(x) + x, atol=1e-6)
        total = jax.jit(jax.shard_map(
            lambda x: jax.lax.psum((softmax(x) ** 2).sum(), "rows"),
            mesh=mesh, in_specs=P("rows"), out_specs=P()))
        wanted = jax.grad(lambda x: (jax.nn.softmax(x) ** 2).sum())(x)
        assert jnp.allclose(jax.grad(total)(x), wanted, atol=1e-6)
        weight = jnp.ones((3, 37))
        both = jax.jit(jax.shard_map(
            lambda x, w: jax.lax.psum((add(x, w) ** 2).sum(), "rows"), mesh=mesh,
            in_specs=(P("rows"), P()), out_specs=P()))
        got = jax.grad(both, argnums=1)(x, weight)
        assert jnp.allclose(got, 2 * (x[:3] + 1) + 2 * (x[3:] + 1), atol=1e-5)
        print("done")
    """
    assert run(script) == "done\n"

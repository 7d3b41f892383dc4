"""Launching kernels: arguments, grids, specialisation, aliasing, globals, concurrency, pickling.

Each test that launches repeatedly does it past the point where launches become native.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import blocklang as bl
from blocklang.jit import record_launches
from blocklang.jit.native import WARM_LAUNCHES, native_launches_paused
from tests.jit import kernels

MANY = WARM_LAUNCHES + 10


@pytest.fixture(params=["python", "native"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Launch through Python, or as usual."""
    if request.param == "python":
        with native_launches_paused():
            yield request.param
    else:
        yield request.param


def is_warm(kernel: bl.JITFunction) -> bool:
    return kernel._chain.is_warm


def test_vector_add(path: str) -> None:
    for n in (1, 15, 16, 1000, 1024, 4096):
        x, y = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
        out = np.zeros(n, np.float32)
        for _ in range(MANY):
            out[:] = -1
            kernels.add[(bl.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
            assert (out == x + y).all()
    if path == "native":
        assert is_warm(kernels.add)


@pytest.mark.parametrize(
    "grid",
    [
        7,
        (7,),
        [7],
        np.int64(7),
        (np.int32(7), 1, 1),
        lambda meta: (bl.cdiv(meta["n"], meta["BLOCK"]),),
        lambda meta: bl.cdiv(meta["n"], meta["BLOCK"]),
    ],
)
def test_grids(grid: Any, path: str) -> None:
    x = np.arange(100, dtype=np.int32)
    for _ in range(MANY):
        out = np.zeros_like(x)
        kernels.add[grid](x, x.copy(), out, 100, BLOCK=16)
        assert (out == 2 * x).all()


def test_three_axes(path: str) -> None:
    for _ in range(MANY):
        out = np.full(60, -1, np.int32)
        kernels.where_am_i[3, 4, 5](out)
        assert (out == np.arange(60)).all()


def test_a_grid_function_sees_every_argument(path: str) -> None:
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append(dict(meta))
        return (1,)

    out = np.zeros(4, np.int64)
    for _ in range(MANY):
        kernels.with_default[grid](out, 7, num_warps=4)
    assert len(seen) == MANY
    assert all(meta.pop("out") is out for meta in seen)
    assert all(meta == {"n": 7, "BLOCK": 4, "num_warps": 4} for meta in seen)


def test_an_error_in_a_grid_function_comes_out(path: str) -> None:
    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (1 // meta["n"],)

    out = np.zeros(4, np.int64)
    for _ in range(MANY):
        kernels.with_default[grid](out, 1)
    with pytest.raises(ZeroDivisionError):
        kernels.with_default[grid](out, 0)


def test_a_zero_grid_checks_its_arguments(path: str) -> None:
    x = np.zeros(8, np.float32)
    out = np.full(8, 5, np.float32)
    for _ in range(MANY):
        kernels.add[(0,)](x, x, out, 8, BLOCK=8)
        with pytest.raises(bl.LaunchError, match="complex"):
            kernels.add[(0,)](x, x, np.zeros(8, complex), 8, BLOCK=8)
    assert (out == 5).all()


def test_a_negative_grid_is_refused(path: str) -> None:
    out = np.zeros(60, np.int32)
    for _ in range(MANY):
        kernels.where_am_i[(1,)](out)
    with pytest.raises(bl.LaunchError, match="negative"):
        kernels.where_am_i[(-1,)](out)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, np.int32, 1),
        (7, np.int32, 7),
        (-(2**31), np.int32, -(2**31)),
        (2**31, np.int64, 2**31),
        (2**63 - 1, np.int64, 2**63 - 1),
        (-(2**63), np.int64, -(2**63)),
        (2**64 - 1, np.uint64, 2**64 - 1),
        (True, np.bool_, True),
        (False, np.bool_, False),
        (0.1, np.float32, np.float32(0.1)),
        (1e300, np.float32, np.inf),
        (-0.0, np.float32, 0.0),
        (np.float64(0.1), np.float64, 0.1),
        (np.int8(-3), np.int8, -3),
        (np.uint16(65535), np.uint16, 65535),
        (np.float16(0.1), np.float16, np.float16(0.1)),
        (ml_dtypes.bfloat16(0.1), ml_dtypes.bfloat16, ml_dtypes.bfloat16(0.1)),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_scalars(value: Any, dtype: Any, expected: Any, path: str) -> None:
    out = np.zeros(2, dtype)
    for _ in range(MANY):
        out[:] = 0
        kernels.store_scalar[1](out, value)
        assert out[0] == expected
        assert np.signbit(out[0]) == np.signbit(np.asarray(value).astype(dtype)[()])
        assert out[1] == 0


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (-1, np.uint8, 255),
        (-1, np.uint64, 2**64 - 1),
        (300, np.int8, 44),
        (2**40 + 5, np.uint32, 5),
        (2**63, np.int64, -(2**63)),
        (256, np.bool_, True),
        (1e10, np.int8, 127),
        (float("nan"), np.int32, 0),
        (2.9, np.uint16, 2),
    ],
)
def test_a_number_is_cast_to_what_memory_holds(value: Any, dtype: Any, expected: int) -> None:
    """A stored value and `other` are cast, as in Triton; operands that do not fit are refused."""
    out = np.zeros(4, dtype)
    kernels.store_number[1](out, VALUE=value)
    assert out.tolist() == [expected] * 3 + [0]


@pytest.mark.parametrize(("value", "expected"), [(10**400, np.inf), (-(10**400), -np.inf), (2**200, np.inf)])
def test_an_integer_too_large_for_a_float_is_infinite(value: int, expected: float) -> None:
    out = np.zeros(1, np.float32)
    kernels.store_typed[1](out, value)
    assert out[0] == expected


def test_values_of_one_scalar_never_mix(path: str) -> None:
    """Versions for 1, for multiples of 16, i32, i64, bool and float, launched in turn."""
    values = [1, 2, 16, 17, 2**40, 2**40 + 1, True, False, 1.0, -1, 0, 2**64 - 1, -(2**40)]
    for _ in range(MANY):
        for value in values:
            out = np.zeros(1, np.float64)
            kernels.store_scalar[1](out, value)
            assert out[0] == float(value)


def test_do_not_specialize_makes_one_version() -> None:
    out = np.zeros(1, np.int32)
    kernels.unspecialised._versions.clear()
    for n in (0, 1, 2, 16, 48):
        kernels.unspecialised[1](out, n)
        assert out[0] == n
    assert len(kernels.unspecialised._versions) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.bool_])
def test_any_strides(dtype: Any, path: str) -> None:
    whole = (np.arange(120).reshape(10, 12) % 7).astype(dtype)
    sources = [
        whole,
        whole[::-1],
        whole[:, ::-1],
        whole[::2, 1::3],
        whole.T,
        np.broadcast_to(whole[0], (5, 12)),
        np.broadcast_to(whole[0, 3], (4, 6)),
        whole[2:2],
    ]
    for x in sources:
        for _ in range(MANY):
            out = np.zeros((x.shape[1], x.shape[0]), dtype).T
            kernels.copy_rows[(x.shape[0],)](x, out, *x.shape, *bl.strides(x), *bl.strides(out), BLOCK=16)
            assert (out == x).all()


def unaligned(n: int, dtype: Any) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    return np.zeros(n * size + 1, np.uint8)[1:].view(dtype)


def test_unaligned_and_zero_dimensional_arrays(path: str) -> None:
    for _ in range(MANY):
        x, y, out = (unaligned(50, np.float32) for _ in range(3))
        x[:], y[:] = np.arange(50), 2
        kernels.add[(1,)](x, y, out, 50, BLOCK=64)
        assert (out == x + 2).all()
        source, target = np.array(3.5), np.array(0.0)
        kernels.read_only[(1,)](source, target)
        assert target == 3.5


def test_arrays_change_between_aligned_and_not(path: str) -> None:
    for i in range(3 * MANY):
        offset = i % 4
        x = np.arange(100, dtype=np.float32)[offset : offset + 50]
        out = np.zeros(50, np.float32)
        kernels.add[(1,)](x, x, out, 50, BLOCK=64)
        assert (out == 2 * x).all()


def test_read_only_arrays(path: str) -> None:
    x = np.full(1, 4.0)
    x.flags.writeable = False
    out = np.zeros(1)
    for _ in range(MANY):
        kernels.read_only[(1,)](x, out)
        assert out[0] == 4
    with pytest.raises(bl.LaunchError, match="'out' is a read-only array"):
        kernels.read_only[(1,)](x, x)
    out.flags.writeable = False
    with pytest.raises(bl.LaunchError, match="'out' is a read-only array"):
        kernels.read_only[(1,)](x, out)


@pytest.mark.parametrize("distance", [0, 1, 3, 16, 50, -1, -20])
def test_overlapping_arrays_read_before_they_write(distance: int, path: str) -> None:
    n = 64
    for _ in range(MANY):
        memory = np.arange(3 * n, dtype=np.float32)
        x, out = memory[n : 2 * n], memory[n + distance : 2 * n + distance]
        expected = x.copy()
        kernels.shift[(1,)](x, out, n, BLOCK=64)
        assert (out == expected).all()


def test_launches_in_place_get_warm_too() -> None:
    """A launch whose arrays overlap otherwise than those of an earlier one has a table of its own."""
    kernel = bl.jit(kernels.scaled.fn)
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    for target in (out, x):
        for _ in range(WARM_LAUNCHES + 2):
            kernel[(1,)](x, target, 8, BLOCK=8)
    assert len(kernel._chain._tables) == 2


def test_alias_classes_have_versions_of_their_own(path: str) -> None:
    memory = np.arange(200, dtype=np.float32)
    a, b, c = memory[:50], memory[40:90], memory[100:150]
    with record_launches() as launches:
        for out in (c, b, a):
            kernels.shift[(1,)](a, out, 0, BLOCK=64)
    assert [launch.specialisation.alias for launch in launches] == ["disjoint", "unknown", "same"]


def test_a_changed_global_is_compiled_in_anew(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    x = np.arange(8, dtype=np.int32)
    out = np.zeros_like(x)
    for scale in (3, 5, 3, True):
        monkeypatch.setattr(kernels, "SCALE", scale)
        for _ in range(MANY):
            kernels.scaled[(1,)](x, out, 8, BLOCK=8)
            assert (out == x * scale).all()


def test_launches_from_many_threads_compile_once(path: str) -> None:
    def use(_: int) -> bool:
        x = np.arange(1000, dtype=np.float64)
        out = np.zeros(1000)
        for _ in range(MANY):
            kernels.add[(4,)](x, x, out, 1000, BLOCK=250)
        return bool((out == 2 * x).all())

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(use, range(16)))
    versions = [v for versions in kernels.add._versions.values() for v in versions]
    assert len(versions) == len(kernels.add._versions)


def test_a_grid_function_may_launch(path: str) -> None:
    inner = np.zeros(4, np.int64)
    out = np.zeros(4, np.int64)

    def grid(meta: dict[str, Any]) -> int:
        kernels.with_default[1](inner, 9)
        return 1

    for _ in range(MANY):
        inner[:] = out[:] = 0
        kernels.with_default[grid](out, 7)
        assert (inner == 9).all()
        assert (out == 7).all()


def test_a_kept_launcher_stays_right(path: str) -> None:
    launch = kernels.unspecialised[1]
    for n in range(MANY):
        out = np.zeros(1, np.int32)
        launch(out, n)
        assert out[0] == n


def test_arrays_are_not_kept_alive() -> None:
    out = np.zeros(4, np.int64)
    watch = weakref.ref(out)
    for _ in range(MANY):
        kernels.with_default[1](out, 3)
    del out
    assert watch() is None


def test_launch_returns_the_compiled_kernel(path: str) -> None:
    out = np.zeros(4, np.int64)
    results = [kernels.with_default[1](out, 3) for _ in range(MANY)]
    assert len(set(map(id, results))) == 1
    assert results[0].abi.argument_names == ("out", "n")


def test_warmup_compiles_without_launching() -> None:
    compiled = kernels.read_only.warmup(np.float32, np.float32, grid=(1,))
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert kernels.read_only.run(x, out, grid=(1,), warmup=True) is compiled
    assert out[0] == 0
    assert kernels.read_only.run(x, out, grid=(1,)) is compiled
    assert out[0] == 1


def test_specialise_from_text_is_what_a_launch_makes() -> None:
    x = np.zeros(64, np.float32)
    with record_launches() as launches:
        kernels.add[(1,)](x, x.copy(), x.copy(), 63, BLOCK=64)
    made = launches[0].specialisation
    specialisation = kernels.add.specialise(made.signature, made.constants)
    assert specialisation == made
    assert made.signature == "*fp32:16,*fp32:16,*fp32:16,i32"
    assert kernels.add.compile(specialisation) is launches[0].compiled


def test_what_a_kernel_says_of_itself() -> None:
    assert kernels.add.__name__ == "add"
    assert kernels.add.arg_names == ["x", "y", "out", "n", "BLOCK"]
    assert [p.is_constexpr for p in kernels.add.params] == [False] * 4 + [True]
    assert repr(kernels.add) == "JITFunction(tests.jit.kernels:add)"
    assert pickle.loads(pickle.dumps(kernels.add)) is kernels.add


def test_num_threads_is_an_option(path: str) -> None:
    x = np.arange(100_000, dtype=np.float32)
    for threads in (1, 2, 3):
        out = np.zeros_like(x)
        kernels.add[(100,)](x, x, out, len(x), BLOCK=1000, num_threads=threads)
        assert (out == 2 * x).all()


def test_long_launches_leave_the_native_path() -> None:
    x = np.arange(1 << 20, dtype=np.float32)
    for _ in range(MANY):
        out = np.zeros_like(x)
        kernels.add[(1 << 14,)](x, x, out, len(x), BLOCK=64)
        assert (out == 2 * x).all()


def test_concurrent_launches_share_no_scratch() -> None:
    """One warm kernel that needs scratch, from several threads, short and long enough to give up the GIL."""
    wrong: list[int] = []
    x = np.linspace(-3, 3, 4 * 4000, dtype=np.float32).reshape(4, 4000)
    compiled = kernels.softmax[(4,)](x, np.zeros_like(x), 4000, BLOCK=4096)
    assert compiled.abi.scratch_bytes > 0

    def use(seed: int) -> None:
        own = np.roll(x, seed, axis=1) * np.float32(1 + seed)
        expected, out = np.zeros_like(x), np.zeros_like(x)
        with native_launches_paused():
            kernels.softmax[(4,)](own, expected, 4000, BLOCK=4096)
        for rows in [4, 1] * 100:
            out[:] = 0
            kernels.softmax[(rows,)](own, out, 4000, BLOCK=4096)
            if not (out[:rows] == expected[:rows]).all() or out[rows:].any():
                wrong.append(seed)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert is_warm(kernels.softmax)

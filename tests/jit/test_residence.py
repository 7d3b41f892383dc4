"""Launches over arrays of a device: the bits of launches over the host's, and what a wrong one is told."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.diagnostics import CheckError, DeviceMemoryError, LaunchError
from blocklang.runtime.device_memory import DeviceMemory
from blocklang.target import device_names
from tests.emulator import kernels
from tests.jit import device_kernels

DEVICES = sorted(set(device_names()) - {"host"})


@pytest.fixture
def dev() -> Iterator[DeviceMemory]:
    memory = bl.device("trn2")
    memory.overruns()
    before = memory.memory().arrays
    yield memory
    memory.overruns()
    gc.collect()
    assert memory.memory().arrays == before


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(list(shape)).standard_normal(shape) * 50).astype(dtype)


def interpreted(kernel: bl.JITFunction) -> bl.JITFunction:
    return bl.jit(interpret=True)(kernel.fn)


CASES: dict[str, tuple[bl.JITFunction, tuple[int, ...], dict[str, Any]]] = {
    "add": (
        kernels.add,
        (8,),
        {"x": numbers(1000), "y": numbers(1001)[1:], "out": np.zeros(1000, "f4"), "n": 1000, "BLOCK": 128},
    ),
    "softmax": (
        kernels.softmax,
        (7,),
        {
            "x": numbers(7, 100),
            "out": np.zeros((7, 100), "f4"),
            "n": 100,
            "x_row": 100,
            "out_row": 100,
            "BLOCK": 128,
        },
    ),
    "matmul": (
        kernels.matmul,
        (3, 2),
        {
            "a": numbers(70, 50),
            "b": numbers(50, 60),
            "c": np.zeros((70, 60), "f4"),
            "M": 70,
            "N": 60,
            "K": 50,
            "BM": 32,
            "BN": 32,
            "BK": 16,
        },
    ),
    "gather": (
        kernels.gather,
        (2,),
        {
            "x": numbers(40),
            "where": np.arange(50, dtype=np.int32)[::-1].copy(),
            "out": np.zeros(50, "f4"),
            "n": 50,
            "limit": 40,
            "BLOCK": 32,
        },
    ),
}


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_a_launch_over_host_arrays(dev: DeviceMemory, name: str, interpret: bool) -> None:
    kernel, grid, arguments = CASES[name]
    kernel = interpreted(kernel) if interpret else kernel
    host = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    moved = {n: dev.to_device(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    kernel[grid](**host)
    kernel[grid](**moved)
    for n, value in host.items():
        if isinstance(value, np.ndarray):
            assert moved[n].numpy().tobytes() == value.tobytes(), n
            assert moved[n].name == n
    dev.check()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_emulated_on_every_device(device: str, name: str) -> None:
    kernel, grid, arguments = CASES[name]
    host = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    kernel[grid](**host)
    memory = bl.device(device)
    moved = {n: memory.to_device(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    with bl.emulate(device, strict=True) as over_moved:
        kernel[grid](**moved)
    with bl.emulate(device) as over_host:
        kernel[grid](**host)
    for n, value in host.items():
        if isinstance(value, np.ndarray):
            assert moved[n].numpy().tobytes() == value.tobytes(), n
    assert over_moved.to_dict() == over_host.to_dict()


def test_warm_launches(dev: DeviceMemory) -> None:
    """Past the launch from which on host arrays are launched without Python."""
    x, out = dev.to_device(numbers(100)), dev.empty(100, "fp32")
    for n in range(1, 40):
        kernels.add[(1,)](x, x, out, n, BLOCK=128)
        assert out.numpy()[:n].tolist() == (x.numpy() * 2)[:n].tolist()


def test_views_and_dtypes(dev: DeviceMemory) -> None:
    for dtype in ("int8", "bf16", "fp16", "fp64"):
        x = dev.empty((4, 100), dtype)
        x[...] = 3
        kernels.add[(1,)](x[1, 10:], x[2], x[3, 5:50], 40, BLOCK=64)
        assert x.numpy().astype(np.float64).sum(axis=1).tolist() == [300, 300, 300, 300 + 40 * 3]


def test_descriptors_tuples_and_strides(dev: DeviceMemory) -> None:
    x = dev.to_device(np.arange(64, dtype=np.float32).reshape(8, 8))
    out = dev.empty((8, 8), "fp32")
    assert bl.strides(x.T) == (1, 8)
    device_kernels.copy_tile[(2, 2)](
        bl.TensorDescriptor.from_tensor(x, [4, 4]), bl.TensorDescriptor.from_tensor(out, [4, 4]), B=4
    )
    assert out.numpy().tolist() == x.numpy().tolist()
    device_kernels.add_pair[(1,)]((x, out), BLOCK=64)
    assert out.numpy().tolist() == (x.numpy() * 2).tolist()
    on_host = r"argument 'pair.1'.* is in the memory of this host"
    with pytest.raises(LaunchError, match=on_host) as raised, bl.emulate("trn2", strict=True):
        device_kernels.add_pair[(1,)]((x, out.numpy()), BLOCK=64)
    assert str(raised.value.help).startswith("pass `bl.device('trn2').to_device(...)` for it")


def test_tuned_kernels(dev: DeviceMemory) -> None:
    def once(call: Callable[[], object], quantiles: Any) -> list[float]:
        call()
        return [1.0] * len(quantiles)

    configs = [bl.Config({"BLOCK": n}) for n in (64, 128)]
    tuned = bl.autotune(configs, key=["n"], reset_to_zero=["out"], do_bench=once)(kernels.add)
    x, out = dev.to_device(numbers(200)), dev.empty(200, "fp32")
    tuned[lambda meta: (bl.cdiv(200, meta["BLOCK"]),)](x, x, out, 200)
    assert out.numpy().tolist() == (x.numpy() * 2).tolist()
    del tuned


def test_checks_know_where_a_device_array_ends(dev: DeviceMemory) -> None:
    x, out = dev.to_device(numbers(100)), dev.empty(100, "fp32")
    checked = bl.jit(debug=True)(device_kernels.unmasked.fn)
    with pytest.raises(CheckError, match=r"'out' \(float32 of shape \(100,\)\)"):
        checked[(1,)](x, out, 100, BLOCK=128)
    with pytest.raises(CheckError, match=r"'out' \(float32 of shape \(100,\)\)"):
        interpreted(device_kernels.unmasked)[(1,)](x, out, 100, BLOCK=128)
    dev.check()


# ---- what lies where it must not ----


def launch(x: Any, y: Any, out: Any) -> None:
    kernels.add[(1,)](x, y, out, 10, BLOCK=16)


def host() -> Any:
    return np.zeros(10, np.float32)


def message_of(call: Callable[[], object]) -> str:
    with pytest.raises(LaunchError) as raised:
        call()
    assert raised.value.location is not None
    assert raised.value.location.file == kernels.__file__
    return raised.value.render()


def test_a_strict_emulation_takes_no_host_array(dev: DeviceMemory) -> None:
    x = dev.empty(10, "fp32")
    with bl.emulate("trn2", strict=True) as run:
        text = message_of(lambda: launch(x, host(), x))
    assert run.to_dict()["launches"] == []
    assert text == (
        "kernels.py:11:5: error: argument 'y' (float32 of shape (10,)) is in the memory of this host, and "
        "the launch is emulated on trn2\n"
        "    def add(x, y, out, n, BLOCK: bl.constexpr):\n"
        "        ^^^\n"
        "help: move it: `y = bl.device('trn2').to_device(y)`, or take it where it lies: `bl.emulate('trn2')`"
    )
    with bl.emulate("trn2"):
        launch(x, host(), host())


def test_arrays_of_another_device(dev: DeviceMemory) -> None:
    x, other = dev.empty(10, "fp32"), bl.device("h100").empty(10, "fp32")
    for kernel in (kernels.add, interpreted(kernels.add)):
        text = message_of(lambda kernel=kernel: kernel[(1,)](x, host(), other, 10, BLOCK=16))  # type: ignore[misc]
        assert "argument 'out' is in the memory of h100, and 'x' in that of trn2" in text
        assert "`out = bl.device('trn2').to_device(out)`" in text
    for strict in (False, True):
        with bl.emulate("h100", strict=strict):
            text = message_of(lambda: launch(x, x, x))
            assert "'x' (float32 of shape (10,)) is in the memory of trn2, and" in text
            assert "`x = bl.device('h100').to_device(x)`" in text
            launch(other, other, other)


def test_a_freed_array_is_not_launched(dev: DeviceMemory) -> None:
    x = dev.empty(10, "fp32")
    view = x[:5]
    x.free()
    for array in (x, view):
        text = message_of(lambda array=array: launch(host(), array, host()))  # type: ignore[misc]
        assert "argument 'y': float32 of shape (10,) of trn2 is used in a launch, but was freed at " in text


def test_a_launch_holds_its_memory(dev: DeviceMemory) -> None:
    """An array that another thread frees meanwhile is nobody else's until the launch has ended."""
    x = dev.to_device(np.ones(1 << 16, np.float32))
    out = dev.empty(1, "fp32")
    before = dev.memory().arrays
    started, alive = threading.Event(), []

    def free() -> None:
        started.wait()
        x.free()
        alive.append(dev.memory().arrays)

    thread = threading.Thread(target=free)
    thread.start()

    def grid(meta: Any) -> tuple[int]:
        """Asked when the arguments have been described."""
        started.set()
        thread.join()
        return (1,)

    device_kernels.total[grid](x, out, BLOCK=1 << 16)
    assert float(out.numpy()[0]) == 1 << 16
    assert alive == [before]
    assert dev.memory().arrays == before - 1


# ---- guards ----


def test_an_emulation_ends_with_a_look_at_the_guards(dev: DeviceMemory) -> None:
    x, out = dev.to_device(numbers(100)), dev.empty(100, "fp32", name="sums")
    with pytest.raises(DeviceMemoryError, match="after 'sums'") as raised, bl.emulate("trn2") as run:
        device_kernels.unmasked[(1,)](x, out, 100, BLOCK=128)
    (found,) = raised.value.findings
    assert (found.side, found.offset, found.element, found.bytes) == ("after", 400, 100, 28 * 4)  # type: ignore[attr-defined]
    assert len(run.to_dict()["launches"]) == 1
    with bl.emulate("trn2"):
        kernels.add[(1,)](x, x, out, 100, BLOCK=128)
    assert out.numpy().tolist() == (x.numpy() * 2).tolist()


def test_an_error_inside_is_not_hidden_by_the_guards(dev: DeviceMemory) -> None:
    x, out = dev.to_device(numbers(100)), dev.empty(100, "fp32")

    def main() -> None:
        with bl.emulate("trn2"):
            device_kernels.unmasked[(1,)](x, out, 100, BLOCK=128)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        main()
    assert len(dev.overruns()) == 1

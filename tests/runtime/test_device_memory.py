"""Arrays in a device's memory: their contents, their lives, their guards, and what wrong use is told."""

from __future__ import annotations

import copy
import ctypes
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import blocklang as bl
from blocklang.diagnostics import DeviceMemoryError, LaunchError, OutOfDeviceMemory, UsageError
from blocklang.runtime.arrays import describe_array
from blocklang.runtime.device_arrays import DeviceArray
from blocklang.runtime.device_heap import GUARD_BYTES, Overrun
from blocklang.runtime.device_memory import DeviceMemory, device
from blocklang.target import Device, Figure, device_names, find_device, format_size
from tests.architecture.rooms import ROOT

DTYPES = ("bool", "int8", "int64", "uint16", "float16", "bfloat16", "float32", "float64", "float8_e5m2")


def with_capacity(size: int, access: int | None = None) -> Device:
    """A Trainium 2 with another global memory."""
    base = find_device("trn2")
    memory = replace(
        base.memory["global"],
        size=Figure(size, "a test"),
        access_bytes=None if access is None else Figure(access, "a test"),
    )
    return replace(base, name="small", memory={**base.memory, "global": memory})


@pytest.fixture
def small() -> DeviceMemory:
    """1 MiB, for this test alone."""
    description = with_capacity(1 << 20)
    return DeviceMemory(description, description)


@pytest.fixture
def trn2() -> Iterator[DeviceMemory]:
    """The memory that the process shares; what a test leaves in it is an error."""
    memory = device("trn2")
    before = memory.memory().arrays
    yield memory
    gc.collect()
    assert memory.memory().arrays == before


def poke(array: DeviceArray, offset: int, data: bytes) -> None:
    """Write at an address near an array, as a wrong kernel does."""
    ctypes.memmove(describe_array(array).address + offset, data, len(data))


# ---- contents ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 0, 4), (2, 3, 4)])
def test_to_the_device_and_back(small: DeviceMemory, dtype: str, shape: tuple[int, ...]) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    host = np.asarray(np.random.default_rng(1).random(shape) * 100).astype(kind)
    array = small.to_device(host)
    assert (array.shape, array.dtype) == (host.shape, kind)
    assert array.strides == host.strides or not host.size
    assert (array.ndim, array.size, array.nbytes) == (host.ndim, host.size, host.nbytes)
    back = array.numpy()
    assert back.tobytes() == host.tobytes()
    assert back.dtype == kind
    assert back.flags.owndata
    assert back.flags.writeable


@given(hnp.arrays(np.int32, hnp.array_shapes(max_dims=3, max_side=6)), st.data())
def test_views_are_numpys(host: Any, data: st.DataObject) -> None:
    key = data.draw(hnp.basic_indices(host.shape, allow_newaxis=True))
    array = device("trn2").to_device(host)
    expected = host[key]
    view = array[key]
    assert view.shape == expected.shape
    assert view.numpy().tobytes() == np.asarray(expected).tobytes()
    assert view.T.numpy().tobytes() == np.asarray(expected).T.tobytes()
    view[...] = 7
    host[key] = 7
    assert array.numpy().tobytes() == host.tobytes()


def test_any_array_of_the_host_is_copied(small: DeviceMemory) -> None:
    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    read_only = host.copy()
    read_only.flags.writeable = False
    for given_ in (host[::-2, 1::2], host.T, read_only, host[:, :0], np.broadcast_to(host[0], (3, 6))):
        array = small.to_device(given_)
        assert array.numpy().tobytes() == given_.tobytes()
        assert array.strides == np.empty(given_.shape, given_.dtype).strides or not given_.size

    class Interface:
        __array_interface__ = host.__array_interface__

    assert small.to_device(Interface()).numpy().tobytes() == host.tobytes()


def test_tensors_are_copied(small: DeviceMemory) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6).to(torch.bfloat16).reshape(2, 3).T
    array = small.to_device(tensor)
    assert array.dtype == ml_dtypes.bfloat16
    assert array.numpy().astype(np.float32).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert small.empty(3, torch.float16).dtype == np.float16
    shared = torch.from_dlpack(small.to_device(np.arange(4, dtype=np.float32)))
    assert shared.tolist() == [0, 1, 2, 3]


def test_between_devices(small: DeviceMemory, trn2: DeviceMemory) -> None:
    array = trn2.to_device(small.to_device(np.arange(5)))
    assert array.device is trn2
    assert array.numpy().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bf16", ml_dtypes.bfloat16), ("fp32", np.float32), ("int1", np.bool_), (float, np.float64)],
)
def test_dtypes_by_name(small: DeviceMemory, dtype: Any, expected: Any) -> None:
    assert small.empty((2, 2), dtype).dtype == np.dtype(expected)
    assert small.empty(3, bl.language.float16).dtype == np.float16


def test_parts_are_written(small: DeviceMemory) -> None:
    array = small.to_device(np.zeros((3, 4), np.int32))
    array[1].copy_from(np.arange(4, dtype=np.int32))
    array[2, ::2] = np.array([8, 9], np.int32)
    array[0] = 5
    array[:, 3] = array[:, 0]
    assert array.numpy().tolist() == [[5, 5, 5, 5], [0, 1, 2, 0], [8, 0, 9, 8]]


def test_reshape_and_transpose_are_views(small: DeviceMemory) -> None:
    array = small.to_device(np.arange(6))
    table = array.reshape(2, -1)
    table.T[2, 0] = 70
    assert array.numpy().tolist() == [0, 1, 70, 3, 4, 5]
    assert array.reshape((3, 2)).shape == (3, 2)
    with pytest.raises(UsageError, match="no view of shape"):
        table.T.reshape(6)
    with pytest.raises(UsageError, match="cannot view shape"):
        table.reshape(5)


def test_repr(small: DeviceMemory) -> None:
    array = small.empty((4, 2), "fp32", name="weights")
    assert repr(array) == "DeviceArray(small, float32, shape=(4, 2), name='weights')"
    assert "strides=(4, 8)" in repr(array.T)
    array.free()
    assert repr(array).endswith("freed)")
    assert repr(small) == "DeviceMemory(small)"


# ---- the host's side of it ----


def test_numpy_takes_no_device_array_by_accident(small: DeviceMemory) -> None:
    array = small.to_device(np.arange(4.0))
    assert not hasattr(array, "__array_interface__")
    with pytest.raises(TypeError, match=r"copy it to the host with `\.numpy\(\)`"):
        np.asarray(array)
    for compute in (lambda: np.add(array, 1), lambda: np.ones(4) + array, lambda: array + 1):  # type: ignore[operator]
        with pytest.raises(TypeError):
            compute()


def test_dlpack_shares_the_memory(small: DeviceMemory) -> None:
    array = small.to_device(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert array.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(array.T)
    assert shared.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert int(shared.__array_interface__["data"][0]) == describe_array(array).address
    array[0, 1] = 9
    assert shared[1, 0] == 9


def test_what_dlpack_gave_out_outlives_the_array(small: DeviceMemory) -> None:
    array = small.to_device(np.arange(1000))
    shared = np.from_dlpack(array)
    array.free()
    other = small.to_device(np.zeros(1000, np.int64))
    assert shared.tolist() == list(range(1000))
    assert small.memory().arrays == 2
    del shared
    assert small.memory().arrays == 1
    assert not other.numpy().any()


def test_dlpack_does_not_know_every_dtype(small: DeviceMemory) -> None:
    with pytest.raises(BufferError, match=r"cannot share an array of bfloat16.*`x\.numpy\(\)`"):
        np.from_dlpack(small.empty(4, "bf16"))


# ---- pickling ----


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_hold_contents_and_device(trn2: DeviceMemory, protocol: int) -> None:
    array = trn2.to_device(np.arange(12).reshape(3, 4), name="x")
    data = pickle.dumps(array[:, 1:], protocol)
    again = pickle.loads(data)
    assert again.device is trn2
    assert again.name == "x"
    assert again.numpy().tolist() == array.numpy()[:, 1:].tolist()
    assert len(pickle.dumps(trn2.empty(1, "int8"))) < 1000


def test_copies_are_arrays_of_their_own(trn2: DeviceMemory) -> None:
    array = trn2.to_device(np.arange(3))
    for other in (copy.copy(array), copy.deepcopy(array)):
        other[0] = 9
        assert array.numpy().tolist() == [0, 1, 2]


def doubled(array: DeviceArray) -> DeviceArray:
    """In another process."""
    result = array.device.empty(array.shape, array.dtype)
    result.copy_from(array.numpy() * 2)
    return result


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_to_another_process_and_back(trn2: DeviceMemory, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    program = f"""
import multiprocessing
import numpy as np
import blocklang as bl
from tests.runtime.test_device_memory import doubled

if __name__ == "__main__":
    arrays = [bl.device("trn2").to_device(np.arange(n)) for n in (0, 5)]
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        for array, other in zip(arrays, pool.map(doubled, arrays)):
            assert other.device is bl.device("trn2")
            assert (other.numpy() == array.numpy() * 2).all()
"""
    directory = Path(os.environ.get("TMPDIR", "/tmp")) / f"blocklang-{os.getpid()}-{method}.py"
    directory.write_text(program, encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, str(directory)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
    finally:
        directory.unlink()
    assert done.returncode == 0, done.stderr


def test_a_device_without_a_name_is_pickled_whole() -> None:
    description = with_capacity(1 << 20)
    memory = device(description)
    assert device(description) is memory
    assert device(with_capacity(1 << 21)) is not memory
    again = pickle.loads(pickle.dumps(memory.to_device(np.arange(3))))
    assert again.device is memory


# ---- lives ----


def test_statistics(small: DeviceMemory) -> None:
    first = small.empty(1000, "fp32")
    second = small.empty((2, 500), "fp64")
    use = small.memory()
    assert (use.bytes_in_use, use.arrays, use.allocations, use.capacity_bytes) == (12_000, 2, 2, 1 << 20)
    assert use.reserved_bytes >= 12_000 + 4 * GUARD_BYTES
    assert small.empty(use.largest_free_bytes, "int8").nbytes == use.largest_free_bytes
    first.free()
    del second
    use = small.memory()
    assert (use.bytes_in_use, use.arrays, use.allocations) == (0, 0, 3)
    assert use.peak_bytes > 12_000


def test_dropped_and_left_arrays_are_freed(small: DeviceMemory) -> None:
    with small.empty(10, "fp32") as array:
        view = array[2:5]
        assert small.memory().arrays == 1
    assert array.is_freed
    assert view.is_freed
    kept = small.empty(10, "fp32")[3:]  # the view keeps its memory
    kept[...] = 1
    assert small.memory().arrays == 1
    del kept
    assert small.memory().arrays == 0
    with small.empty(10, "fp32") as array:
        array.free()


@pytest.mark.parametrize("access", [None, 1, 64, 100, 512])
def test_alignment(access: int | None) -> None:
    description = with_capacity(1 << 20, access)
    memory = DeviceMemory(description, description)
    expected = {None: 64, 1: 64, 64: 64, 100: 128, 512: 256}[access]
    arrays = [memory.empty(n, "int8") for n in (1, 77, 0, 300)]
    addresses = [describe_array(array).address for array in arrays]
    assert all(address % expected == 0 for address in addresses)
    spans = sorted((address, address + a.nbytes) for address, a in zip(addresses, arrays, strict=True))
    assert all(end + 2 * GUARD_BYTES <= start for (_, end), (start, _) in pairwise(spans))


def test_only_touched_pages_cost_memory() -> None:
    """An array of 64 GiB, of which one element is written."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not say how much memory a process has")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    with device("trn2").empty(1 << 34, "fp32") as array:
        array[1 << 33] = 1.0
        assert float(array[1 << 33].numpy()) == 1.0
        assert resident() - before < 1 << 24
        array[: 1 << 24] = 1.0
        assert resident() - before > 1 << 25
    assert resident() - before < 1 << 25  # the pages of a freed array go back


def test_a_line_for_each_wrong_life(small: DeviceMemory) -> None:
    array = small.empty((2, 3), "fp32", name="x")
    with pytest.raises(DeviceMemoryError, match=r"a part of 'x'.*cannot be freed alone"):
        array[1].free()
    array.free()
    line = rf"'x' \(float32 of shape \(2, 3\)\) of small is {{}}, but was freed at {Path(__file__).name}:\d+"
    with pytest.raises(DeviceMemoryError, match=line.format("freed again")) as raised:
        array.free()
    assert raised.value.location is not None
    assert raised.value.location.file == __file__
    assert "it was allocated at" in str(raised.value.help)
    for use, done in (
        (array.numpy, "read"),
        (lambda: array[0], "indexed"),
        (lambda: array.reshape(6), "reshaped"),
        (lambda: np.from_dlpack(array), "shared"),
        (lambda: small.to_device(array), "copied"),
        (lambda: array.copy_from(np.zeros((2, 3), np.float32)), "written"),
        (lambda: pickle.dumps(array), "read"),
    ):
        with pytest.raises(DeviceMemoryError, match=line.format(done)):
            use()
    with pytest.raises(LaunchError, match=line.format("used in a launch")):
        describe_array(array)


def test_out_of_memory_says_what_fills_it(small: DeviceMemory) -> None:
    kept = [small.empty(1000 * n, "fp32", name=f"n{n}") for n in (1, 50, 3)]
    with pytest.raises(OutOfDeviceMemory) as raised:
        small.empty((1024, 1024), "bf16")
    message = str(raised.value)
    assert "small has no room for 2 MiB (bfloat16 of shape (1024, 1024)): it holds 1 MiB" in message
    largest = format_size(small.memory().largest_free_bytes)
    assert f"210.9 KiB are in use by 3 arrays, and the largest free piece is {largest}" in message
    assert f"{Path(__file__).name}:" in message
    positions = [message.index(f"'n{n}'") for n in (50, 3, 1)]
    assert positions == sorted(positions)
    assert isinstance(raised.value, MemoryError)
    del kept
    small.empty(900_000, "int8")


def test_arrays_in_cycles_are_collected_first(small: DeviceMemory) -> None:
    cycle: list[Any] = [small.empty(600_000, "int8")]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert small.empty(700_000, "int8").nbytes == 700_000
    finally:
        gc.enable()


# ---- guards ----


@pytest.mark.parametrize(
    ("offset", "data", "side", "first", "element", "count"),
    [
        (40, b"\0\0\0\0", "after", 40, 10, 4),
        (40 + GUARD_BYTES - 1, b"\0", "after", 39 + GUARD_BYTES, (39 + GUARD_BYTES) // 4, 1),
        (-1, b"\0", "before", -1, -1, 1),
        (-GUARD_BYTES, b"\1" * 8, "before", -GUARD_BYTES, -GUARD_BYTES // 4, 8),
    ],
)
def test_an_overrun_is_found(
    small: DeviceMemory, offset: int, data: bytes, side: str, first: int, element: int, count: int
) -> None:
    small.empty(16, "fp32")
    array = small.empty(10, "fp32", name="x")
    small.check()
    poke(array, offset, data)
    with pytest.raises(DeviceMemoryError, match=f"overwritten {side} 'x'") as raised:
        small.check()
    (found,) = raised.value.findings
    assert isinstance(found, Overrun)
    assert (found.side, found.offset, found.element, found.bytes) == (side, first, element, count)
    assert found.made.file == __file__
    assert pickle.loads(pickle.dumps(raised.value)).findings == raised.value.findings
    small.check()  # said once
    array.free()


def test_overruns_are_found_on_free_and_after_a_drop(small: DeviceMemory) -> None:
    array = small.empty(10, "fp32")
    poke(array, 40, b"\0")
    with pytest.raises(DeviceMemoryError, match=r"1 byte was overwritten after float32 of shape \(10,\)"):
        array.free()
    assert array.is_freed
    arrays = [small.empty(10, "fp32") for _ in range(2)]
    for each in arrays:
        poke(each, 40, b"\0")
    del arrays, each
    with pytest.raises(DeviceMemoryError) as raised:
        small.check()
    assert len(raised.value.findings) == 2
    small.check()


@given(st.integers(1, 255), st.integers(0, 7))
def test_a_value_stored_again_and_again_is_seen(byte: int, phase: int) -> None:
    array = device("trn2").empty(64 + phase, "int8")
    poke(array, array.nbytes, bytes([byte]) * 8)
    (found,) = device("trn2").overruns()
    assert found.bytes >= 7


# ---- threads and processes ----


def test_threads(small: DeviceMemory) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            held: list[tuple[DeviceArray, Any]] = []
            for _ in range(200):
                host = random.integers(0, 100, int(random.integers(0, 2000)), dtype=np.int32)
                held.append((small.to_device(host), host))
                if len(held) > 8:
                    array, host = held.pop(int(random.integers(len(held))))
                    assert (array.numpy() == host).all()
                    if random.random() < 0.5:
                        array.free()
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    small.check()
    assert small.memory().arrays == 0
    assert small.memory().largest_free_bytes == (1 << 20) - 2 * GUARD_BYTES


def test_one_thread_frees(small: DeviceMemory) -> None:
    for _ in range(50):
        array = small.empty(8, "fp32")
        told: list[str] = []
        start = threading.Barrier(4)

        def free(
            array: DeviceArray = array, told: list[str] = told, start: threading.Barrier = start
        ) -> None:
            start.wait()
            try:
                array.free()
            except DeviceMemoryError:
                told.append("again")

        threads = [threading.Thread(target=free) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_a_copy() -> None:
    program = """
import os, threading
import numpy as np
import blocklang as bl

dev = bl.device("trn2")
array = dev.to_device(np.arange(4))
stop = threading.Event()

def churn():
    while not stop.is_set():
        dev.empty(100, "fp32").free()

threading.Thread(target=churn).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        array[0] = 99
        dev.empty(1000, "fp32").free()
        dev.check()
        os._exit(0 if array.numpy().tolist() == [99, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
assert array.numpy().tolist() == [0, 1, 2, 3]
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


# ---- wrong use ----


def test_wrong_arguments(small: DeviceMemory) -> None:
    for wrong, message in (
        (lambda: small.empty((2, -1), "fp32"), r"\(2, -1\) is no shape"),
        (lambda: small.empty((2.5,), "fp32"), "is no shape"),  # type: ignore[arg-type]
        (lambda: small.empty(2, "quadruple"), "'quadruple' is no dtype"),
        (lambda: small.empty(2, np.complex64), "complex numbers"),
        (lambda: small.to_device(3.0), "a float is no array"),
        (lambda: small.to_device([1, 2]), "a list is no array"),
        (lambda: small.to_device(np.array(["a"])), "strings"),
        (lambda: small.empty(3, "fp32").copy_from(np.zeros(3)), "cannot copy an array of float64"),
        (lambda: small.empty(3, "fp32").copy_from(np.zeros(4, "f4")), r"shape \(4,\) to one of float32"),
        (lambda: small.empty(3, "fp32")[[0, 1]], "not indexed by list"),
        (lambda: small.empty(3, "fp32")[True], "not indexed by bool"),
        (lambda: bl.device("trn9"), "no device 'trn9'"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            wrong()
        assert raised.value.help
    with pytest.raises(IndexError):
        small.empty(3, "fp32")[3]
    assert len(small.empty((3, 2), "fp32")) == 3
    with pytest.raises(TypeError, match="no length"):
        len(small.empty((), "fp32"))
    assert small.memory().arrays == 0


def test_more_memory_than_this_machine_has_addresses_for() -> None:
    description = with_capacity(1 << 60)
    with pytest.raises(OutOfDeviceMemory, match="no 1073741824 GiB of address space") as raised:
        DeviceMemory(description, description).empty(1, "int8")
    assert "memory.global.bytes" in str(raised.value.help)


@pytest.mark.parametrize("name", device_names())
def test_every_device_has_memory(name: str) -> None:
    dev = bl.device(name)
    array = dev.to_device(np.arange(100))
    assert array.numpy().tolist() == list(range(100))
    assert all(dev.space(each).bytes.size for each in dev.description.on_chip)

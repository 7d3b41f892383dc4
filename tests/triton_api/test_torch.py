"""PyTorch's CPU tensors as arguments, without a copy; and cuda meaning the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.jit.native import WARM_LAUNCHES
from tests.architecture.rooms import ROOT
from tests.triton_api import kernels

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'blocklang[torch]'")

LAUNCHES = 2 * WARM_LAUNCHES  # the later ones are the native launcher's


def add(x: Any, y: Any, out: Any, n: Any) -> Any:
    return kernels.add[(1,)](x, y, out, n, BLOCK=16)


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"],
)
def test_dtypes(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.arange(11).to(dtype)
    for _ in range(LAUNCHES):
        out = torch.full((13,), 99).to(dtype)
        add(x, x, out, 11)
        assert out.tolist() == [*range(0, 22, 2), 99, 99]


def test_bool() -> None:
    @triton.jit
    def invert(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) == 0, mask=i < n)

    x = torch.tensor([True, False, True])
    out = torch.zeros(3, dtype=torch.bool)
    invert[(1,)](x, out, 3, BLOCK=4)
    assert out.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda base: base[1:4, 2:7],
        lambda base: base.t()[1:4, ::2],
        lambda base: base[::3],
        lambda base: base[2:3].expand(4, 9),
        lambda base: base.requires_grad_()[1:],
        lambda base: torch.nn.Parameter(base),
        lambda base: base.reshape(1, 1, 1, 1, 9, 9)[0, 0, 0, 0],
    ],
)
def test_strides_and_offsets(make: Any) -> None:
    for _ in range(LAUNCHES):
        base = torch.arange(81.0).reshape(9, 9)
        x = make(base)
        out = torch.zeros(tuple(x.shape))
        rows, columns = x.shape
        kernels.copy_strided[(rows,)](x, out, rows, columns, *x.stride(), BLOCK=16)
        assert torch.equal(out, x.detach())


def test_scalars_and_inference_tensors() -> None:
    with torch.inference_mode():
        x = torch.full((), 3.0)
        out = torch.zeros(())
    for _ in range(LAUNCHES):
        kernels.add[(1,)](x, x, out, 1, BLOCK=1)
        assert out.item() == 6.0


def test_the_address_is_read_at_every_launch() -> None:
    for launch in range(LAUNCHES):
        tensors = [torch.full((5,), float(launch)) for _ in range(3)]
        add(tensors[0], tensors[1], tensors[2], 5)
        assert tensors[2].tolist() == [2.0 * launch] * 5
    kept = torch.zeros(4)
    kept.resize_(5000)
    kept.fill_(1.0)
    out = torch.zeros(5000)
    kernels.add[(5000 // 16 + 1,)](kept, kept, out, 5000, BLOCK=16)
    assert out.tolist() == [2.0] * 5000


def test_kinds_of_tensors_take_turns() -> None:
    """A table for one kind must not take another."""
    x = torch.ones(5)
    with torch.inference_mode():
        inferred = torch.ones(5)
    lazily = torch.complex(torch.zeros(5), torch.ones(5)).conj().imag
    assert lazily.is_neg()
    for _ in range(LAUNCHES):
        for one in (x, inferred, np.ones(5, np.float32), torch.nn.Parameter(torch.ones(5))):
            out = torch.zeros(5)
            add(one, x, out, 5)
            assert out.tolist() == [2.0] * 5
        for wrong in (lazily, torch.ones(5, dtype=torch.complex64), torch.ones(5, device="meta")):
            with pytest.raises(bl.LaunchError):
                add(wrong, x, out, 5)
        wide = torch.zeros(5, dtype=torch.float64)
        add(x.double(), x.double(), wide, 5)
        assert wide.tolist() == [2.0] * 5


def test_a_tensor_whose_storage_was_freed_is_refused() -> None:
    """Its address is null, cold and warm; an empty tensor's is too, and has nothing to read."""
    out = torch.zeros(5)
    for _ in range(LAUNCHES):
        whole = torch.ones(8)
        freed = whole[3:]
        add(freed, freed, out, 5)
        whole.untyped_storage().resize_(0)
        with pytest.raises(bl.LaunchError, match="no memory"):
            add(freed, torch.ones(5), out, 5)
        add(torch.zeros(0), torch.zeros(0), torch.zeros(0), 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["sparse", "nested", "vmap", "fake"])
def test_a_tensor_without_dense_memory_is_refused(kind: str) -> None:
    def launch(x: Any) -> Any:
        add(x, torch.ones(5), torch.zeros(5), 5)
        return x

    def launch_fake() -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        launch(FakeTensorMode().from_tensor(torch.ones(5)))

    launches = {
        "sparse": lambda: launch(torch.ones(5).to_sparse()),
        "nested": lambda: launch(torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])),
        "vmap": lambda: torch.func.vmap(launch)(torch.ones(2, 5)),
        "fake": launch_fake,
    }
    with pytest.raises(bl.LaunchError, match=r"no dense array|no memory"):
        launches[kind]()


def test_lazily_copied_memory_is_not_shared() -> None:
    for _ in range(LAUNCHES):
        one = torch.zeros(5)
        other = torch._lazy_clone(one)
        add(torch.ones(5), torch.ones(5), other, 5)
        assert other.tolist() == [2.0] * 5
        assert one.tolist() == [0.0] * 5


def test_in_place_and_overlapping() -> None:
    for _ in range(LAUNCHES):
        base = torch.arange(12.0)
        add(base[:11], base[:11], base[:11], 11)
        assert base.tolist() == [*[2.0 * k for k in range(11)], 11.0]
        base = torch.arange(12.0)
        add(base[1:], base[1:], base[:11], 11)
        assert base.tolist() == [*[2.0 * k for k in range(1, 12)], 11.0]


def test_a_warm_launch_takes_microseconds() -> None:
    import time

    tensors = [torch.ones(16) for _ in range(3)]
    for _ in range(LAUNCHES):
        add(tensors[0], tensors[1], tensors[2], 16)
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            add(tensors[0], tensors[1], tensors[2], 16)
        best = min(best, (time.perf_counter() - start) / 200)
    assert best < 10e-6


def test_warmup_with_dtypes() -> None:
    kernel = kernels.scale.warmup(torch.bfloat16, 5, 2.0, BLOCK=8, grid=(1,))
    assert kernel.specialisation.signature == "*bf16:16,i32,fp32"
    kernel = kernels.scale.warmup(triton.MockTensor(torch.float32), 5, 2.0, BLOCK=8, grid=(1,))
    assert kernel.specialisation.signature.startswith("*fp32:16")


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp16", tl.float16), ("bf16", tl.bfloat16), ("int16", tl.int16)]
)
def test_reinterpret(name: str, dtype: Any) -> None:
    bits = torch.zeros(4, dtype=torch.int16)
    wrapped = triton.reinterpret(bits, dtype)
    assert isinstance(wrapped, triton.TensorWrapper)
    kernel = kernels.calls_helper.warmup(wrapped, BLOCK=4, grid=(1,))
    assert kernel.specialisation.signature.startswith(f"*{name.replace('int', 'i')}")
    assert triton.reinterpret(wrapped, torch.int16) is bits


def test_autotuning_leaves_tensors_as_they_were() -> None:
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0] * 3

    tuned = triton.autotune(configs, key=["n"], do_bench=bench)(kernels.scale)
    x = torch.ones(20)
    tuned[lambda meta: (triton.cdiv(20, meta["BLOCK"]),)](x, 20, 3.0)
    assert x.tolist() == [3.0] * 20
    assert list(tuned.cache) == [(20, "torch.float32")]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["x"], do_bench=bench)(kernels.scale)
    tuned[(2,)](x, 20, 3.0)
    assert x.tolist() == [0.0] * 20


def test_a_tensor_elsewhere_is_refused_with_a_remedy() -> None:
    with pytest.raises(bl.LaunchError, match="device meta"):
        kernels.scale[(1,)](torch.zeros(5, device="meta"), 5, 2.0, BLOCK=8)

    class OnGpu:
        device = "cuda:0"
        dtype = torch.float32
        data_ptr = staticmethod(lambda: 0)

    with pytest.raises(bl.LaunchError, match="--device-map cuda=cpu"):
        kernels.scale[(1,)](OnGpu(), 5, 2.0, BLOCK=8)


def test_the_driver_names_a_device() -> None:
    assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cpu")
    triton.testing.assert_close(torch.ones(3, dtype=torch.bfloat16), torch.ones(3))
    with pytest.raises(AssertionError):
        triton.testing.assert_close(torch.ones(3, requires_grad=True), torch.zeros(3))


# ---- cuda means the CPU ----

SCRIPT = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    device = torch.device("cuda", 0)
    x = torch.rand(1000, device="cuda")
    y = torch.rand(1000).cuda().to("cuda:0", torch.float32).to(device=device)
    out = torch.empty_like(x)
    assert x.is_cuda and x.device == device == torch.device("cuda:0") and isinstance(device, torch.device)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(40):
        add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000, BLOCK=256)
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    assert torch.equal(out, x + y)

    generator = torch.Generator(device="cuda").manual_seed(3)
    other = torch.Generator().manual_seed(3)
    assert torch.equal(
        torch.rand(4, generator=generator, device="cuda"), torch.rand(4, generator=other)
    )
    model = torch.nn.Linear(4, 4, device="cuda").cuda().to("cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert model(torch.ones(1, 4, device="cuda")).dtype == torch.bfloat16
    weight = torch.zeros(3, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    assert weight.grad.tolist() == [2.0] * 3
    torch.set_default_device("cuda")
    assert torch.zeros(2).device == device
    torch.set_default_device(None)
    with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()), torch.device("cuda"):
        assert torch.ones(2).new_zeros(3).tolist() == [0.0] * 3
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.get_device_properties(device).multi_processor_count > 0
    assert torch.cuda.max_memory_allocated() == 0
    assert torch.empty(3, pin_memory=True).pin_memory().shape == (3,)
    torch.cuda.empty_cache(); torch.cuda.manual_seed(1); torch.cuda.current_stream().synchronize()
    from torch.utils._triton import has_triton, has_triton_package
    assert has_triton_package()
    print("done")
"""


def run(directory: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = directory / "script.py"
    script.write_text(textwrap.dedent(source), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "blocklang", "run", *options, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_script_for_a_gpu_runs_on_the_cpu(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT, "--device-map", "cuda=cpu")
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    "line",
    ["torch.zeros(3, device='cuda')", "torch.zeros(3).cuda()", "torch.cuda.current_device()"],
)
def test_without_the_map_the_remedy_is_named(tmp_path: Path, line: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so the script may ask for it")
    done = run(tmp_path, f"import torch\n{line}\n")
    assert done.returncode == 1
    assert "blocklang run --device-map cuda=cpu SCRIPT.py" in done.stderr
    done = run(tmp_path, "import torch\nassert torch.zeros(3).is_cuda\n")
    assert "blocklang run --device-map cuda=cpu SCRIPT.py" in done.stderr


def test_the_map_ends_with_the_context() -> None:
    from blocklang.torch.mapping import cuda_means_cpu

    before = torch.cuda.is_available(), torch.Generator, torch.cuda.Event
    with cuda_means_cpu():
        assert torch.cuda.is_available()
        assert torch.zeros(2, device="cuda:3").device == torch.device("cpu")
        assert torch.device("meta").type == "meta"
        with pytest.raises(NotImplementedError, match="CUDAGraph"):
            torch.cuda.CUDAGraph()
    assert (torch.cuda.is_available(), torch.Generator, torch.cuda.Event) == before

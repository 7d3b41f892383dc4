"""The time of launches on devices: against the documented formulas, by order, and by what changes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from benchmarks.published import ROWS, compare, load_both
from blocklang.compiler import compile_counted
from blocklang.diagnostics import CompilationError, UsageError
from blocklang.emulation.estimate import Run, estimate_launch
from blocklang.emulation.placement import place_blocks
from blocklang.emulation.profile import Profile, model_errors
from blocklang.emulation.whatif import Launched, parse_vary, sweep
from blocklang.ir.parser import parse_kernel
from blocklang.target import device_names, find_device
from tests.fuzz.__main__ import make
from tests.fuzz.execution import InvalidCase

TIMED = [name for name in device_names() if find_device(name).is_timed]


def emulated(device: str, start: Callable[[], object]) -> Profile:
    with bl.emulate(device) as run:
        start()
    return run


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


@bl.jit
def add(out: Any, x: Any, y: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@bl.jit
def softmax(out: Any, x: Any, n: Any, stride: Any, B: tl.constexpr) -> None:
    row, cols = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + cols, e / tl.sum(e, 0), mask=cols < n)


def run_add(n: int, block: int = 1024) -> None:
    x = ones(n)
    add[(math.ceil(n / block),)](np.empty_like(x), x, x, n, B=block)


def run_softmax(rows: int, columns: int) -> None:
    x = ones(rows, columns)
    softmax[(rows,)](np.empty_like(x), x, columns, columns, B=bl.next_power_of_2(columns))


# ---- against formulas ----


def test_a_product_on_trn2_takes_what_the_formulas_say() -> None:
    m, n, k = 256, 1024, 512
    at, b, c = ones(k, m), ones(k, n), ones(m, n)

    def start() -> None:
        load_both[(m // 128, n // 512)](at, b, c, m, n, k, BM=128, BN=512, BK=128)

    (launch,) = emulated("trn2", start).launches
    assert c[0, 0] == k
    found, device = launch.estimate, find_device("trn2")
    assert found is not None
    products = (m // 128) * (n // 512) * (k // 128)
    assert found.busy["tensor"] == pytest.approx(products * 2048 / 2.4e9)  # f32: 4 passes of 512 columns
    rows = products * 128 * (device.dma.row_seconds(512) + device.dma.row_seconds(2048))
    stores = m * (n // 512) * device.dma.row_seconds(2048)
    assert found.busy["dma"] == pytest.approx((rows + stores) / 16)
    assert max(found.busy.values()) < found.seconds < sum(found.busy.values()) + 20e-6
    assert found.bytes == {"global": pytest.approx(products * 128 * (128 + 512) * 4 + m * n * 4)}


def test_memory_is_what_a_sum_of_vectors_waits_for_on_a_gpu() -> None:
    n = 1 << 23
    (launch,) = emulated("h100", lambda: run_add(n)).launches
    found = launch.estimate
    assert found is not None
    assert found.bottleneck == "memory"
    assert found.seconds == pytest.approx(3 * 4 * n / 3350e9, rel=0.15)
    assert found.moved_bytes == found.useful_bytes == 3 * 4 * n


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "name", "percent"),
    [
        ("trn2", "matmul, tiles loaded for every product", 5),
        ("trn2", "matmul, column loads hoisted", 5),
    ],
)
def test_published_times_of_trn2(device: str, name: str, percent: float) -> None:
    found = compare(device, name)
    assert abs(found.error_percent) < percent
    assert found.error_percent == pytest.approx(stated_error(device, name), abs=0.1)
    assert found.bottleneck == ("tensor" if "hoisted" in name else "dma")


@pytest.mark.slow
def test_published_products_of_h100_are_in_order() -> None:
    found = [compare(*row) for row in ROWS if row[0] == "h100"]
    times = [row.model_us for row in found]
    assert times == sorted(times, reverse=True)
    assert all(abs(row.error_percent) < 20 for row in found)
    for row in found:
        assert row.error_percent == pytest.approx(stated_error("h100", row.name), abs=0.1)


def stated_error(device: str, name: str) -> float:
    """What reports say of the model, in percent."""
    return model_errors(find_device(device))[name]


# ---- what holds for every device ----


@pytest.mark.parametrize("device", TIMED)
def test_reports_of_every_device(device: str) -> None:
    run = emulated(device, lambda: run_softmax(64, 1000))
    report = run.to_dict()
    assert report["time_us"] > 0
    assert report["bottleneck"] in report["engines"]
    for engine in report["engines"].values():
        assert 0 < engine["active_percent"] <= 100 + 1e-9
    for free in report["counterfactuals"].values():
        assert free["time_us"] <= report["time_us"] * 1.02
    assert sum(line["time_us"] for line in report["lines"]) == pytest.approx(report["time_us"])
    assert {line["text"].split()[0] for line in report["lines"]} <= {"v", "e", "tl.store(out", "row,"}
    assert str(run).count("time by line") == 1


@pytest.mark.parametrize("device", TIMED)
def test_twice_the_work_takes_about_twice_the_time(device: str) -> None:
    one, two = (emulated(device, lambda: run_add(n)).seconds for n in (1 << 21, 1 << 22))  # noqa: B023
    assert one is not None
    assert two is not None
    assert two / one == pytest.approx(2, rel=0.15)


def test_results_and_repeated_launches() -> None:
    x = np.random.default_rng(0).standard_normal((32, 500)).astype(np.float32)
    plain, counted = np.zeros_like(x), np.zeros_like(x)
    softmax[(32,)](plain, x, 500, 500, B=512)
    with bl.emulate("trn2") as run:
        for _ in range(3):
            softmax[(32,)](counted, x, 500, 500, B=512)
    assert (plain == counted).all()
    (launch,) = run.launches
    assert launch.times == 3
    assert launch.estimate is not None
    assert run.seconds == pytest.approx(3 * launch.estimate.seconds)


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_random_kernels(seed: int) -> None:
    """Every operation has its instructions on every device; only what does not fit is refused."""
    try:
        case = make(seed)
    except InvalidCase:
        pytest.skip("the kernel leaves its arrays")
    kernel = compile_counted(parse_kernel(case.kernel), find_device("trn2"))
    x, y, z = (*case.grid, 1, 1)[:3]
    grid = (x, y, z)
    row = np.ones((math.prod(grid), kernel.counts.counters), np.int64)
    run = Run(kernel.block, kernel.counts, row, {}, grid)
    for device in map(find_device, TIMED):
        try:
            versions = place_blocks(kernel.block, device).versions
            found = estimate_launch(run, device, versions=versions)
        except CompilationError as error:
            if not re.search("does not fit|shared memory", error.message):
                raise
            continue
        assert 0 <= found.seconds < 1
        assert math.fsum(line.seconds for line in found.lines) == pytest.approx(found.seconds)
        assert all(seconds <= found.seconds * (1 + 1e-9) for seconds in found.busy.values())


# ---- what changes the time ----


@bl.jit
def copy(out: Any, x: Any, row: Any, column: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    rows, cols = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    at = rows[:, None] * row + cols[None, :] * column
    tl.store(out + at, tl.load(x + at))


@pytest.mark.parametrize(("device", "least"), [("trn2", 5), ("h100", 3)])
def test_single_elements_are_slower_than_rows(device: str, least: float) -> None:
    x = ones(512, 1024)

    def run(row: int, column: int) -> float:
        found = emulated(device, lambda: copy[(8,)](np.empty_like(x), x, row, column, M=64, N=512)).seconds
        assert found is not None
        return found

    assert run(1024, 2) > least * run(512, 1)


@bl.jit
def triangle(out: Any, x: Any, B: tl.constexpr) -> None:
    pid = tl.program_id(0)
    acc = tl.zeros((B, B), tl.float32)
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    for _ in range(pid):
        acc += tl.load(x + at)
    tl.store(out + pid * B * B + at, acc)


@pytest.mark.parametrize("device", ["trn2", "h100"])
def test_programs_that_do_more_take_longer(device: str) -> None:
    (launch,) = emulated(device, lambda: triangle[(40,)](ones(40, 64, 64), ones(64, 64), B=64)).launches
    assert launch.estimate is not None
    assert launch.estimate.classes == 40


@bl.jit
def product(a: Any, b: Any, c: Any, N: Any, K: Any, B: tl.constexpr, BK: tl.constexpr) -> None:
    rows, cols = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    inner = tl.arange(0, BK)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + cols[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


def run_product(size: int, block: int, **options: int) -> None:
    a = ones(size, size, dtype=np.float16)
    grid = (size // block, size // block)
    product[grid](a, a, ones(size, size), size, size, B=block, BK=64, **options)


def test_stages_hide_the_way_from_memory() -> None:
    times = [emulated("h100", lambda: run_product(512, 128, num_stages=s)).seconds for s in (1, 2, 3)]  # noqa: B023
    assert times[0] > 1.3 * times[1]  # type: ignore[operator]
    assert times[1] >= times[2]  # type: ignore[operator]


def test_shared_memory_that_does_not_hold_the_stages() -> None:
    with pytest.raises(CompilationError) as caught, bl.emulate("h100"):
        run_product(512, 256, num_stages=8)
    assert "524,288 bytes of shared memory, 291,840 more than h100 gives to a block (232,448)" in str(
        caught.value
    )
    assert "num_stages" in str(caught.value.help)


# ---- what if ----


def launches_of(start: Callable[[], object]) -> list[Launched]:
    with bl.emulate("trn2", only_runs=True) as run:
        start()
    return [Launched(each.kernel, each.run, each.times) for each in run.launches if each.run is not None]


def test_a_sweep_shows_where_a_kernel_stops_to_fit() -> None:
    launches = launches_of(lambda: run_product(512, 128))
    vary = [parse_vary("memory.sbuf.bytes=16KiB,32KiB,64KiB,28MiB"), parse_vary("dma.engines=8,16")]
    points = list(sweep("trn2", vary, launches))
    assert [p.seconds is None for p in points] == [True] * 2 + [True] * 2 + [False] * 4
    assert "does not fit" in points[0].misfits[0].message
    assert points[0].changes == {"memory.sbuf.bytes": "16KiB", "dma.engines": "8"}
    few, many = points[-2:]
    assert few.bottleneck == "dma"
    assert few.seconds > 1.3 * many.seconds  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dma.engines", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("dma.engines=4,,8", "expected KEY=VALUE"),
        ("dma.motors=4", "trn2 has no 'motors' there"),
        ("memory.sbuf.bytes=100", "do not divide into 128 partitions"),
        ("memory.sbuf.bytes=many", "expected a size"),
        ("dma.engines=0", "expected a whole number of at least 1"),
        ("name=x", "trn2 has no 'name' there"),
    ],
)
def test_wrong_keys_and_values(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(sweep("trn2", [parse_vary(text)], []))
    assert message in str(caught.value)


def test_too_many_combinations() -> None:
    vary = [parse_vary(f"dma.engines={','.join('4' * 40)}")] * 2
    with pytest.raises(UsageError, match="more than 1000 combinations"):
        list(sweep("trn2", vary, []))

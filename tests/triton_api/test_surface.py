"""Knobs, the driver, `triton.testing`, caches: the rest of Triton's host API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang.triton as triton
from blocklang.triton.runtime import driver
from blocklang.triton.runtime.cache import get_cache_manager, triton_key


def test_knobs_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = triton.knobs
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert knobs.runtime.interpret is False
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert knobs.runtime.knobs["interpret"]
    with knobs.runtime.scope():
        knobs.runtime.interpret = False
        assert not knobs.runtime.knobs["interpret"]
    assert knobs.runtime.knobs["interpret"]
    copied = knobs.runtime.copy()
    copied.debug = True
    assert knobs.runtime.debug is False
    assert copied.reset().debug is False
    assert knobs.language.default_fp_fusion is True
    assert "print" in knobs.autotuning.knobs


def test_knobs_scope_restores_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "/somewhere")
    assert triton.knobs.cache.dir == "/somewhere"
    with triton.knobs.cache.scope():
        os.environ["TRITON_CACHE_DIR"] = "/elsewhere"
        assert triton.knobs.cache.dir == "/elsewhere"
    assert triton.knobs.cache.dir == "/somewhere"
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.setenv("TRITON_HOME", "/home/of")
    assert triton.knobs.cache.dir == "/home/of/.triton/cache"


def test_driver() -> None:
    active = driver.active
    assert active.get_current_target().backend == "cpu"
    assert active.get_current_device() == 0
    assert active.utils.get_device_properties(0)["multiprocessor_count"] == os.cpu_count()
    interface = active.get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    interface.synchronize()
    end.record()
    assert start.elapsed_time(end) >= 0
    assert active.get_benchmarker()(lambda: None, quantiles=[0.5]) >= 0
    assert triton.compiler.max_shared_mem(0) > 0


def test_driver_can_be_replaced() -> None:
    other = object()
    driver.set_active(other)
    try:
        assert driver.active is other
    finally:
        driver.reset_active()
    assert driver.active is driver.default


def test_do_bench() -> None:
    calls: list[int] = []
    bench = triton.testing.do_bench
    assert bench(lambda: calls.append(1), warmup=0, rep=1) >= 0
    low, high = bench(lambda: None, warmup=0, rep=1, quantiles=(0.1, 0.9))
    assert low <= high
    assert len(bench(lambda: None, warmup=0, rep=0.1, return_mode="all")) >= 1
    assert triton.testing.do_bench_cudagraph(lambda: None, rep=1) >= 0
    with pytest.raises(ValueError, match="return_mode"):
        bench(lambda: None, return_mode="mode")


def test_assert_close() -> None:
    x = np.array([1.0, np.nan, 3.0], np.float32)
    triton.testing.assert_close(x, x + np.float32(0.005))
    with pytest.raises(AssertionError, match="hint"):
        triton.testing.assert_close(x, x + 1, err_msg="hint")
    with pytest.raises(AssertionError):
        triton.testing.assert_close(x, x[:2])
    triton.testing.assert_close(x, x * np.float32(1.1), atol=0, rtol=0.2)


def test_perf_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=["n"],
            x_vals=[1, 2],
            line_arg="provider",
            line_vals=["one", "ten"],
            line_names=["One", "Ten"],
            plot_name="products",
            ylabel="ms",
            args={"offset": 5},
        )
    )
    def bench(n: int, provider: str, offset: int) -> Any:
        return n * {"one": 1.0, "ten": 10.0}[provider] + offset, 0, 0

    table = bench.run(print_data=True, save_path=str(tmp_path), return_df=True)
    assert "products:" in capsys.readouterr().out
    rows = (tmp_path / "products.csv").read_text().split()
    assert rows[1:] == ["(ms),Ten", "(ms)", "1,6.0,15.0", "2,7.0,25.0"]
    assert len(table) == 2


def test_cache_manager_keeps_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    manager = get_cache_manager("some-key")
    assert manager.get_file("a.json") is None  # type: ignore[attr-defined]
    path = manager.put("{}", "a.json", binary=False)  # type: ignore[attr-defined]
    assert manager.get_file("a.json") == path  # type: ignore[attr-defined]
    assert Path(path).read_text() == "{}"
    assert triton_key().startswith("3.7.1")


def test_reinterpret_refuses_what_has_no_address() -> None:
    with pytest.raises(TypeError, match="Cannot reinterpret"):
        triton.reinterpret(3, triton.language.float16)

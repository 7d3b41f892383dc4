"""`autotune` and `heuristics`: when it measures, what it keeps, and what it gives back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.tune import Autotuner, do_bench

# The body of a kernel has no types before a launch.
# mypy: disable-error-code="no-untyped-def"


@bl.jit
def accumulate(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@bl.jit
def accumulate_compounds(x, pair, n, BLOCK: bl.constexpr):
    start = tl.program_id(0) * BLOCK
    x.store([start], x.load([start]) + 1)
    i = start + tl.arange(0, BLOCK)
    tl.store(pair[0] + i, tl.load(pair[0] + i, mask=i < n) + pair[1], mask=i < n)


@bl.jit
def copy(x, out, n, BLOCK: bl.constexpr, EVEN: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + i, tl.load(x + i))
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


CONFIGS = [bl.Config({"BLOCK": 16}), bl.Config({"BLOCK": 64}, num_warps=8)]


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (bl.cdiv(meta["n"], meta["BLOCK"]),)


class Clock:
    """Measures by what the configs say: the first argument that it is made with is the fastest."""

    def __init__(self, calls: int = 1) -> None:
        self.measured = 0
        self.calls = calls

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        for _ in range(self.calls):
            call()
        self.measured += 1
        return [10.0 - self.measured] * 3


def test_measures_once_per_key() -> None:
    clock = Clock()
    tuned = bl.autotune(CONFIGS, key=["n"], do_bench=clock)(accumulate)
    x = np.zeros(100, np.float32)
    for launches, (n, dtype, measured) in enumerate(
        [(100, np.float32, 2), (100, np.float32, 2), (50, np.float32, 4), (100, np.float64, 6)]
    ):
        tuned[grid](x.astype(dtype), n)
        assert clock.measured == measured, launches
    assert len(tuned.cache) == 3
    assert tuned.best_config is CONFIGS[1]
    assert set(tuned.configs_timings) == set(CONFIGS)


def test_known_forms_launch_what_run_would() -> None:
    """Forms that are known, and what looks like one: other counts, types, an emptied cache."""
    clock = Clock()
    tuned = bl.autotune(CONFIGS, key=["n"], do_bench=clock)(accumulate)
    x, wide = np.zeros(100, np.float32), np.zeros(100, np.float64)
    for _ in range(40):  # beyond what makes a launch warm
        tuned[grid](x, 100)
        tuned[grid](wide, 100)
        tuned[grid](x, n=100)
        tuned[grid](x[::2], 50)
    assert clock.measured == 3 * len(CONFIGS)
    assert x.tolist() == [120.0] * 50 + [80.0] * 50
    assert wide.tolist() == [40.0] * 100
    tuned.cache.clear()
    tuned[grid](x, 100)
    assert clock.measured == 4 * len(CONFIGS)
    tuned.cache[next(iter(tuned.cache))] = CONFIGS[0]
    tuned[grid](x, 100)
    assert tuned.best_config is CONFIGS[0]
    for wrong in ((), (x,), (x, "n"), (None, 100), (x, 100, 64, 1)):
        with pytest.raises((TypeError, ValueError, bl.LaunchError, bl.CompilationError)):
            tuned[grid](*wrong)
    tuned[grid](x, 100)
    assert x.tolist() == [123.0] * 50 + [83.0] * 50


@pytest.mark.parametrize("calls", [1, 7])
def test_written_arrays_have_their_contents_back(calls: int) -> None:
    tuned = bl.autotune(CONFIGS, key=["n"], do_bench=Clock(calls))(accumulate)
    base = np.arange(200, dtype=np.float32)
    tuned[grid](base[50:150], 100)
    expected = np.arange(200, dtype=np.float32)
    expected[50:150] += 1
    assert base.tolist() == expected.tolist()


def test_arrays_in_descriptors_and_tuples_have_their_contents_back() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(100, np.float32)

    def set_block(arguments: dict[str, Any]) -> None:
        arguments["x"].block_shape = [arguments["BLOCK"]]

    for hook, first in ((None, 16), (set_block, 1)):
        configs = [bl.Config({"BLOCK": block}, pre_hook=hook) for block in ((16, 32) if hook else (16,))]
        configs += [bl.Config({"BLOCK": 16}, num_warps=8, pre_hook=hook)]
        tuned = bl.autotune(configs, key=["n"], do_bench=Clock(3))(accumulate_compounds)
        before = x.copy(), y.copy()
        tuned[grid](bl.TensorDescriptor.from_tensor(x, [first]), (y, 5), 64)
        assert x.tolist() == (before[0] + 1).tolist()
        assert y[:64].tolist() == (before[1][:64] + 5).tolist()


def test_contents_are_back_after_a_failure() -> None:
    def fails(call: Any, quantiles: Any) -> Any:
        call()
        raise ValueError("no clock")

    tuned = bl.autotune(CONFIGS, key=["n"], do_bench=fails)(accumulate)
    x = np.zeros(100, np.float32)
    with pytest.raises(ValueError, match="no clock"):
        tuned[grid](x, 100)
    assert not x.any()


def test_one_config_is_not_measured() -> None:
    def never(call: Any, quantiles: Any) -> Any:
        raise AssertionError("measured")

    tuned = bl.autotune(CONFIGS[:1], key=["no such argument"], do_bench=never)(accumulate)
    x = np.zeros(100, np.float32)
    tuned[grid](x, 100)
    assert x.tolist() == [1.0] * 100
    assert tuned.best_config is CONFIGS[0]


def test_reset_to_zero_and_restore_value() -> None:
    x = np.full(100, 5.0, np.float32)
    tuned = bl.autotune(CONFIGS, key=["n"], reset_to_zero=["x"], do_bench=Clock(3))(accumulate)
    tuned[grid](x, 100)
    assert x.tolist() == [1.0] * 100
    tuned[grid](x, 100)
    assert x.tolist() == [2.0] * 100
    seen: list[float] = []

    def watch(call: Any, quantiles: Any) -> list[float]:
        call()
        seen.append(float(x[0]))
        return [1.0] * 3

    tuned = bl.autotune(CONFIGS, key=["n"], restore_value=["x"], do_bench=watch)(accumulate)
    tuned[grid](x, 100)
    assert seen == [2.0, 2.0]
    assert x.tolist() == [3.0] * 100


def test_hooks_see_every_argument() -> None:
    order: list[str] = []

    def before(arguments: dict[str, Any], reset_only: bool = False) -> None:
        order.append(f"pre {arguments['BLOCK']}{' reset' if reset_only else ''}")

    def after(arguments: dict[str, Any], exception: Any) -> None:
        order.append(f"post {arguments['n']} {exception}")

    own = bl.Config({"BLOCK": 32}, pre_hook=lambda arguments: order.append(f"own {arguments['BLOCK']}"))
    tuned = bl.autotune([CONFIGS[0], own], ["n"], pre_hook=before, post_hook=after, do_bench=Clock())(
        accumulate
    )
    tuned[grid](np.zeros(100, np.float32), 100)
    assert order == ["pre 16", "post 100 None", "own 32", "pre 32", "post 100 None", "pre 32 reset", "own 32"]


def test_heuristics_below_and_above() -> None:
    x = np.arange(64, dtype=np.float32)
    even = bl.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    blocks = bl.autotune(CONFIGS, key=["n"], do_bench=Clock())
    for tuned in (blocks(even(copy)), bl.heuristics({"BLOCK": lambda args: 16})(even(copy))):
        out = np.zeros_like(x)
        tuned[lambda meta: (bl.cdiv(64, meta["BLOCK"]),)](x, out, 64)
        assert out.tolist() == x.tolist()
    stacked = blocks(even(copy))
    assert stacked.base_fn is copy.fn
    assert stacked.fn.fn is copy
    assert stacked.arg_names == copy.arg_names
    assert stacked.keys == ["n"]


def test_heuristics_see_earlier_results() -> None:
    both = bl.heuristics({"BLOCK": lambda args: 16, "EVEN": lambda args: args["BLOCK"] == 16})(copy)
    x = np.arange(16, dtype=np.float32)
    out = np.zeros_like(x)
    both[(1,)](x, out, 16)
    assert out.tolist() == x.tolist()


def test_pruning() -> None:
    clock = Clock()
    many = [bl.Config({"BLOCK": 2**k}) for k in range(2, 8)]
    early = {"early_config_prune": lambda configs, named, **kw: [c for c in configs if c.kwargs["BLOCK"] > 4]}
    tuned = bl.autotune(many, ["n"], prune_configs_by=early, do_bench=clock)(accumulate)
    tuned[grid](np.zeros(100, np.float32), 100)
    assert clock.measured == 5
    model = {"perf_model": lambda **arguments: abs(arguments["BLOCK"] - 32), "top_k": 2}
    tuned = bl.autotune(many, ["n"], prune_configs_by=model, do_bench=Clock())(accumulate)
    tuned[grid](np.zeros(100, np.float32), 100)
    assert [c.kwargs["BLOCK"] for c in tuned.configs_timings] == [32, 16]
    nothing: dict[str, Any] = {"early_config_prune": lambda configs, named, **kw: []}
    tuned = bl.autotune(many, ["n"], prune_configs_by=nothing)(accumulate)
    with pytest.raises(bl.BlocklangError, match="No valid autotuner configs"):
        tuned[grid](np.zeros(100, np.float32), 100)
    tuned = bl.autotune(many, ["n"], prune_configs_by={**model, "top_k": 1.5})(accumulate)
    with pytest.raises(TypeError, match="top_k"):
        tuned[grid](np.zeros(100, np.float32), 100)


def test_a_config_that_cannot_be_compiled_loses() -> None:
    @bl.jit
    def checks(x, BLOCK: bl.constexpr):
        tl.static_assert(BLOCK < 32)
        tl.store(x + tl.arange(0, BLOCK), 1.0)

    tuned = bl.autotune([bl.Config({"BLOCK": 32}), bl.Config({"BLOCK": 16})], [], do_bench=Clock())(checks)
    x = np.zeros(32, np.float32)
    tuned[(1,)](x)
    assert tuned.best_config is not None
    assert tuned.best_config.kwargs == {"BLOCK": 16}


def test_what_is_chosen_cannot_be_given() -> None:
    tuned = bl.autotune(CONFIGS, ["n"])(accumulate)
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned[(1,)](np.zeros(100, np.float32), 100, BLOCK=16)


def test_progress_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    tuned = bl.autotune(CONFIGS, ["n"], do_bench=Clock())(accumulate)
    tuned[grid](np.zeros(100, np.float32), 100)
    said = capsys.readouterr().out
    assert said.startswith("accumulate for (100, float32): tuned in")
    assert "* BLOCK=64 num_warps=8    8 ms   1.00" in said


def test_winners_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path))
    x = np.zeros(100, np.float32)
    first, second, third = Clock(), Clock(), Clock()
    for clock in (first, second):
        tuned = bl.autotune(CONFIGS, ["n"], do_bench=clock, cache_results=True)(accumulate)
        tuned[grid](x, 100)
        assert tuned.best_config == CONFIGS[1]
    assert (first.measured, second.measured) == (2, 0)
    assert x.tolist() == [2.0] * 100
    for file in (tmp_path / "autotune").iterdir():
        file.write_text("{not json")
    tuned = bl.autotune(CONFIGS, ["n"], do_bench=third, cache_results=True)(accumulate)
    with pytest.warns(RuntimeWarning, match="damaged: this tuning result is made again"):
        tuned[grid](x, 100)
    assert third.measured == 2


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(blocked))
    tuned = bl.autotune(CONFIGS, ["n"], do_bench=Clock(), cache_results=True)(accumulate)
    x = np.zeros(100, np.float32)
    tuned[grid](x, 100)
    assert x.tolist() == [1.0] * 100


def test_warmup_compiles_every_config() -> None:
    tuned = bl.autotune(CONFIGS, ["n"])(accumulate)
    assert len(tuned.warmup(np.float32, 100, grid=(1,))) == 2


def test_the_old_interface_warns() -> None:
    with pytest.warns(DeprecationWarning, match="do_bench"):
        tuned = bl.autotune(CONFIGS, ["n"], warmup=1, rep=1)(accumulate)
    x = np.zeros(100, np.float32)
    tuned[grid](x, 100)
    assert x.tolist() == [1.0] * 100


def test_configs_compare_by_what_they_say() -> None:
    assert bl.Config({"A": 1, "B": 2}) == bl.Config({"B": 2, "A": 1})
    assert hash(bl.Config({"A": 1, "B": 2})) == hash(bl.Config({"B": 2, "A": 1}))
    assert bl.Config({"A": 1}) != bl.Config({"A": 1}, num_warps=8)
    assert bl.Config({"A": 1}, pre_hook=print) != bl.Config({"A": 1})
    assert bl.Config({"A": 1}, maxnreg=64).all_kwargs() == {
        "A": 1,
        "num_warps": 4,
        "num_ctas": 1,
        "num_stages": 3,
        "maxnreg": 64,
    }
    assert str(bl.Config({"A": 1})) == "A: 1, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None"


def test_no_configs_means_the_default() -> None:
    tuned = Autotuner(accumulate, accumulate.arg_names, [], [])
    assert tuned.configs == [bl.Config({})]


def test_gradients_are_dropped_before_each_call() -> None:
    class Tensor:
        grad: Any = 1

    tensor = Tensor()
    do_bench(lambda: None, warmup=0, rep=0, grad_to_none=[tensor])
    assert tensor.grad is None

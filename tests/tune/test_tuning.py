"""Tuning as users meet it: one application per call, failures, results on disk, a device's model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import blocklang as bl
from blocklang.cache.entries import Entry
from blocklang.cli import main
from blocklang.tune import winners
from blocklang.tune.racing import race
from blocklang.tune.report import format_report, tuning_forced
from tests.tune import kernels

N = 100
ROOT = Path(__file__).resolve().parents[2]


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (bl.cdiv(meta["n"], meta["BLOCK"]),)


def configs(*blocks: int) -> list[bl.Config]:
    return [bl.Config({"BLOCK": block}) for block in blocks]


def applied(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What one application makes of x."""
    out = x.copy()
    if name == "in_place":
        return out * 2 + 1
    if name == "partial":
        out[:N:2] += 3
        return out
    out[:8] += np.bincount(np.arange(N) % 8, minlength=8).astype(np.float32)
    return out


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("BLOCKLANG_CACHE", "1")
    monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


HOOKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "restore_value": {"restore_value": ["x"]},
    "hooks": {
        "pre_hook": lambda arguments, reset_only=False: None if reset_only else arguments["x"].fill(7.0),
        "post_hook": lambda arguments, exception: arguments["x"].fill(9.0),
    },
}


@pytest.mark.parametrize("hooks", HOOKS)
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("name", ["in_place", "atomic", "partial"])
def test_one_application_per_call(name: str, interpret: bool, hooks: str, disk: Path) -> None:
    """Fresh, known to the autotuner, and found on disk; with any number of configs."""
    kernel = getattr(kernels, name)
    if interpret:
        kernel = bl.jit(interpret=True)(kernel.fn)
    for blocks in ((32,), (16, 64), (8, 16, 32, 64, 128)):
        x = np.arange(N, dtype=np.float32)
        expected = x.copy()
        for process in ("fresh", "from disk"):
            tuned = bl.autotune(configs(*blocks), ["n"], rep=1, **HOOKS[hooks])(kernel)
            for _ in range(3):
                tuned[grid](x, N)
                expected = applied(name, expected)
                assert x.tolist() == expected.tolist(), (blocks, process)
            if len(blocks) > 1:
                assert tuned.report is not None
                assert tuned.report.from_disk == (process == "from disk" and not interpret)


pytestmark = pytest.mark.filterwarnings("ignore:warmup, rep and use_cuda_graph")


def test_zeroed_while_measured_and_before_the_launch(disk: Path) -> None:
    x = np.full(N, 5.0, np.float32)
    for _ in ("fresh", "from disk"):
        bl.autotune(configs(16, 64), ["n"], reset_to_zero=["x"], rep=1)(kernels.in_place)[grid](x, N)
        assert x.tolist() == [1.0] * N


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_a_config_that_fails_half_way_is_reported(interpret: bool) -> None:
    kernel = bl.jit(interpret=True, debug=True)(kernels.breaks.fn) if interpret else kernels.breaks
    tuned = bl.autotune(configs(64, 32, 128, 16), ["n"], rep=1)(kernel)
    x = np.zeros(N, np.float32)
    with pytest.warns(RuntimeWarning, match=r"left out: BLOCK=64: .*too wide; BLOCK=128: .*too wide"):
        tuned[grid](x, N)
    assert x.tolist() == [1.0] * N
    assert tuned.report is not None
    failed = {row.config.kwargs["BLOCK"]: row.dropped for row in tuned.report.rows if not row.milliseconds}
    assert failed.keys() == {64, 128}
    assert all("too wide" in why for why in failed.values())


def test_all_failing_lists_each(golden: Callable[[str, str], None]) -> None:
    x = np.zeros(N, np.float32)
    with pytest.raises(bl.BlocklangError) as caught:
        bl.autotune(configs(16, 32), ["n"])(kernels.refuses)[grid](x, N)
    golden("all_fail.txt", caught.value.render() + "\n")
    assert not x.any()


def test_what_all_fail_with_is_said_as_itself(golden: Callable[[str, str], None]) -> None:
    with pytest.raises(bl.CompilationError) as caught:
        bl.autotune(configs(16, 32), ["n"])(kernels.in_place)[lambda meta: (1,)](np.zeros(N), "n")
    golden("same_failure.txt", caught.value.render() + "\n")


def test_a_hook_that_fails_is_the_users() -> None:
    def fails(arguments: dict[str, Any]) -> None:
        arguments["x"].fill(3.0)
        raise ZeroDivisionError

    tuned = bl.autotune([bl.Config({"BLOCK": b}, pre_hook=fails) for b in (16, 32)], ["n"])(kernels.in_place)
    x = np.zeros(N, np.float32)
    with pytest.raises(ZeroDivisionError):
        tuned[grid](x, N)
    assert not x.any()


def test_threads_tune_once_and_each_launch_counts_once() -> None:
    measured: list[int] = []

    def clock(call: Any, quantiles: Any) -> list[float]:
        call()
        measured.append(1)
        return [1.0] * 3

    tuned = bl.autotune(configs(16, 64), ["n"], do_bench=clock)(kernels.in_place)
    arrays = [np.full(N, k, np.float32) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda x: tuned[grid](x, N), arrays))
    assert [x.tolist() for x in arrays] == [[2.0 * k + 1] * N for k in range(8)]
    assert len(measured) == 2


def test_an_interrupt_leaves_arrays_as_they_were() -> None:
    def interrupted(call: Any, quantiles: Any) -> Any:
        call()
        raise KeyboardInterrupt

    tuned = bl.autotune(configs(16, 64), ["n"], do_bench=interrupted)(kernels.in_place)
    x = np.zeros(N, np.float32)
    with pytest.raises(KeyboardInterrupt):
        tuned[grid](x, N)
    assert not x.any()
    assert not tuned.cache


# ---- on disk ----

SCRIPT = """
import numpy as np
import blocklang as bl
import blocklang.language as tl

@bl.autotune([bl.Config({"BLOCK": b}) for b in (16, 64, 256)], key=["n"])
@bl.jit
def add_one(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

x = np.zeros(1000, np.float32)
add_one[lambda meta: (bl.cdiv(1000, meta["BLOCK"]),)](x, 1000)
assert (x == 1).all()
print(add_one.report.from_disk, add_one.best_config.kwargs["BLOCK"], add_one.report.parallel)
"""


@pytest.fixture
def script(tmp_path: Path, disk: Path) -> Callable[..., list[str]]:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)

    def run(before: str = "", **environment: str) -> list[str]:
        code = textwrap.dedent(before) + f"\nimport runpy; runpy.run_path({str(file)!r}, run_name='__main__')"
        command = [sys.executable, "-c", code]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=300)
        return done.stdout.split()

    return run


def test_a_second_process_does_not_tune_again(script: Callable[..., list[str]]) -> None:
    first, second = script(), script()
    assert first[0] == "False"
    assert second[:2] == ["True", first[1]]
    for off in ({"BLOCKLANG_AUTOTUNE_CACHE": "0"}, {"BLOCKLANG_CACHE": "0"}, {"BLOCKLANG_NUM_THREADS": "7"}):
        assert script(**off)[0] == "False", off
    facts = CliRunner().invoke(main, ["cache", "info"]).output
    assert re.search(r"^tuning results +2$", facts, re.MULTILINE)
    assert "and 2 tuning results" in CliRunner().invoke(main, ["cache", "clear"]).output
    assert script()[0] == "False"


def _tune(**options: Any) -> Any:
    tuned = bl.autotune(configs(16, 64), ["n"], rep=1, **options)(kernels.in_place)
    tuned[grid](np.zeros(N, np.float32), N)
    assert tuned.report is not None
    return tuned.report


def _tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)


def _rename(file: Path) -> None:
    """Another key's entry under this name."""
    winners.store().keep("0" * 64, Entry({"rows": [(0, [1.0, 1.0, 1.0], "")]}, b""))
    os.replace(file.with_name("0" * 64 + ".kernel"), file)


def _open_to_all(file: Path) -> None:
    file.chmod(0o666)


@pytest.mark.parametrize("spoil", [_tear, _flip, _rename, _open_to_all])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_believed_is_measured_again(disk: Path, spoil: Callable[[Path], None]) -> None:
    assert not _tune().from_disk
    assert _tune().from_disk
    (file,) = (disk / "autotune").iterdir()
    spoil(file)
    assert not _tune().from_disk


def test_what_a_result_belongs_to(disk: Path) -> None:
    assert not _tune().from_disk
    assert _tune(cache_results=False).from_disk is False
    with bl.num_threads(3):
        assert not _tune().from_disk
    assert not _tune(model_device="trn2").from_disk
    assert _tune(model_device="trn2").from_disk
    with tuning_forced() as reports:
        assert not _tune().from_disk
    assert len(reports) == 1


# ---- in turns ----


def test_the_clearly_slower_leave_and_the_fastest_stays() -> None:
    calls = dict.fromkeys((1.0, 1.05, 1.3, 9.0), 0)

    def turn(entrant: float, measure: Callable[[Callable[[], float]], None]) -> str:
        def timed() -> float:
            calls[entrant] += 1
            return entrant

        measure(timed)
        return ""

    results = race(list(calls), turn, 100.0)
    assert {entrant for entrant, result in results.items() if not result.left} == {1.0, 1.05}
    assert calls[9.0] == 6  # three turns, of which the first call does not count
    assert calls[1.3] < calls[1.05] <= calls[1.0] <= 130
    assert results[9.0].quantiles == (9.0, 9.0, 9.0)


def test_long_calls_are_made_few_times() -> None:
    calls: list[str] = []

    def turn(entrant: str, measure: Callable[[Callable[[], float]], None]) -> str:
        def timed() -> float:
            calls.append(entrant)
            return 5000.0

        measure(timed)
        return ""

    race(["a", "b"], turn, 100.0)
    assert len(calls) == 4


def test_all_but_one_may_fail() -> None:
    def turn(entrant: str, measure: Callable[[Callable[[], float]], None]) -> str:
        if entrant != "c":
            return "failed"
        measure(lambda: 1.0)
        return ""

    results = race(["a", "b", "c"], turn, 10.0)
    assert [bool(result.left) for result in results.values()] == [True, True, False]
    assert results["a"].quantiles == ()


# ---- pruning by a model ----


def test_a_devices_model_leaves_out_configs(golden: Callable[[str, str], None]) -> None:
    x = np.arange(4096, dtype=np.float32)
    expected = x * 2 + 1
    tuned = bl.autotune(
        configs(64, 1024, 4096, 16), ["n"], model_device="trn2", prune_configs_by={"top_k": 2}, rep=1
    )(kernels.in_place)
    tuned[grid](x, 4096)
    assert x.tolist() == expected.tolist()
    assert tuned.report is not None
    modelled = {row.config.kwargs["BLOCK"]: row.dropped for row in tuned.report.rows}
    assert {block for block, why in modelled.items() if why.startswith("trn2:")} == {16, 64}
    with pytest.raises(bl.BlocklangError, match="no device"):
        bl.autotune(configs(16), [], model_device="trn22")(kernels.in_place)


# ---- the command ----


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["tune", *arguments], prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def clean_path() -> Iterator[None]:
    path = sys.path[:]
    yield
    sys.path[:] = path


def test_command(tmp_path: Path, disk: Path, clean_path: None, golden: Callable[[str, str], None]) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    for _ in range(2):  # what is on disk is not looked at
        result = invoke(str(file), "--json", str(tmp_path / "found.json"))
        assert result.exit_code == 0, result.stderr
        lines = result.stdout.splitlines()
        assert re.fullmatch(r"add_one for \(1000, float32\): tuned in [\d.]+ s.*", lines[0])
        assert lines[1].split() == ["config", "median", "ratio"]
        assert re.fullmatch(r"\* BLOCK=\d+ +[\d.]+ us +1\.00", lines[2])
        assert len(lines) == 5
        assert "False" in result.stderr
    assert '"best": true' in (tmp_path / "found.json").read_text()


def test_command_without_anything_to_tune(tmp_path: Path, clean_path: None) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    result = invoke(str(file))
    assert result.exit_code == 2
    assert "launched no kernel that has configs to choose from" in result.stderr
    assert "help: put `@bl.autotune" in result.stderr


def test_table(disk: Path) -> None:
    report = _tune()
    text = format_report(report)
    assert text == str(report)
    assert text.count("\n") == 2 + len(report.rows)

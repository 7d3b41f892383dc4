"""`blocklang devices` and `blocklang doctor --measure` as a user types them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from blocklang.cli import main
from blocklang.target import find_device
from blocklang.target.device_search import shipped_text


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments, prog_name="blocklang")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.toml").write_text(shipped_text("h100").replace('"h100"', '"mine"', 1), encoding="utf-8")
    (own / "broken.toml").write_text("name = 3\n", encoding="utf-8")
    monkeypatch.setenv("BLOCKLANG_DEVICE_PATH", os.pathsep.join([str(tmp_path / "absent"), str(own)]))
    lines = invoke("devices", "list").stdout.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["trn2"][:3] == ["neuron", "8", "shipped"]
    assert rows["host"][0] == "cpu"
    assert rows["host"][2] == "detected"
    assert rows["mine"][:3] == ["gpu", "132", str(own / "mine.toml")]
    assert rows["broken"][0] == "-"
    assert "name: expected a text, got 3" in " ".join(rows["broken"])
    assert find_device("mine").name == "mine"


@pytest.mark.parametrize("name", ["trn2", "h100"])
def test_show(name: str, golden: Callable[[str, str], None]) -> None:
    result = invoke("devices", "show", name)
    assert result.exit_code == 0, result.stderr
    golden(f"devices_show_{name}.txt", result.stdout)


def test_show_json() -> None:
    shown = json.loads(invoke("devices", "show", "trn2", "--json").stdout)
    assert shown["memory"]["scratch"]["partitions"] == {"value": 128, "source": "A2", "unverified": False}
    assert shown["engines"]["tensor"]["clock"]["value"] == 2.4e9
    assert shown["dma"]["descriptor"]["unverified"] is True
    assert shown["cost"][0]["instructions"] == ["nc_matmul"]
    assert shown["published"][0]["seconds"] == pytest.approx(39.89e-3)


def test_new_is_valid_and_works_by_its_path_and_name(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    result = invoke("devices", "new", "mine")
    assert result.exit_code == 0, result.stderr
    assert (
        result.stdout == "wrote mine.toml; change its figures, then: blocklang devices validate mine.toml\n"
    )
    checked = invoke("devices", "validate", "mine.toml")
    assert checked.exit_code == 0, checked.stderr
    assert checked.stdout.startswith("mine.toml: mine is right: kind neuron, ")
    assert invoke("devices", "show", "mine.toml").stdout.startswith("mine: one NeuronCore-v3")
    monkeypatch.setenv("BLOCKLANG_DEVICE_PATH", str(directory))
    assert invoke("devices", "show", "mine").exit_code == 0


def test_new_leaves_out_what_was_published_of_the_other() -> None:
    """A changed copy is another device: no model was ever compared with it."""
    assert invoke("devices", "new", "mine", "--from", "h100").exit_code == 0
    found = find_device("mine.toml")
    assert found.published == ()
    assert found.engines == find_device("h100").engines


@pytest.mark.parametrize("origin", ["trn1", "trn3", "a100", "h200", "mi300x", "host"])
def test_new_from_others(origin: str) -> None:
    assert invoke("devices", "new", "mine", "--from", origin, "-o", "file.toml").exit_code == 0
    assert invoke("devices", "validate", "file.toml").exit_code == 0
    assert find_device("file.toml").name == "mine"


MISTAKES = {
    "unknown": ("devices", "show", "trn4"),
    "no_file": ("devices", "validate", "nowhere.toml"),
    "new_exists": ("devices", "new", "there", "-o", "there.toml"),
    "new_name": ("devices", "new", "a/b"),
    "new_from": ("devices", "new", "mine", "--from", "h10"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(name: str, golden: Callable[[str, str], None]) -> None:
    Path("there.toml").write_text("", encoding="utf-8")
    result = invoke(*MISTAKES[name])
    golden(f"devices_mistake_{name}.txt", f"{result.stderr}exit status {result.exit_code}\n")


# What is replaced in the file of trn2 (or h100), and by what.
WRONG_FILES = {
    "missing_table": ("trn2", "[dma]", "[dmas]"),
    "missing_figure": ("trn2", 'bandwidth = { value = "23 B/ns"', 'nominal = { value = "23 B/ns"'),
    "missing_dma": ("trn2", "descriptor = {", "# descriptor = {"),
    "missing_source": ("trn2", 'cores = { value = 8, source = "A2" }', "cores = { value = 8 }"),
    "unknown_source": ("trn2", 'cores = { value = 8, source = "A2"', 'cores = { value = 8, source = "A22"'),
    "unknown_key": ("trn2", "banks = {", "bank = {"),
    "unknown_kind": ("trn2", 'kind = "neuron"', 'kind = "neurone"'),
    "unknown_engine": ("trn2", 'engines = ["gpsimd"]', 'engines = ["gpsim"]'),
    "unit": ("trn2", '"2.4 GHz"', '"2.4 GB"'),
    "no_unit": ("trn2", 'value = "2.4 GHz"', "value = 2.4"),
    "share": ("trn2", "value = 0.9,", "value = 90,"),
    "partitions": ("trn2", "[tiles]\npartitions = { value = 128", "[tiles]\npartitions = { value = 64"),
    "bank_bytes": ("trn2", 'bank_bytes = { value = "2 KiB"', 'bank_bytes = { value = "4 KiB"'),
    "core_bandwidth": ("trn2", '"368 GB/s"', '"400 GB/s"'),
    "formula_name": ("trn2", "'max(MIN_II, 8 * N)'", "'max(MIN_I, 8 * N)'"),
    "formula_call": ("trn2", "'max(MIN_II, 8 * N)'", "'print(8 * N)'"),
    "formula_kind": ("trn2", "'max(MIN_II, 8 * N)'", "'max(MIN_II, 8 * dtype)'"),
    "formula_syntax": ("trn2", "'max(MIN_II, 8 * N)'", "'max(MIN_II, 8 * N'"),
    "two_costs": ("trn2", 'instructions = ["bn_aggr"]', 'instructions = ["reciprocal"]'),
    "rule": ("trn2", 'when = "fast_mode"', 'when = "fast"'),
    "published": ("trn2", 'time = "1416 ns"', "# no time"),
    "shared": ("h100", 'block_shared_bytes = { value = "227', 'block_shared_bytes = { value = "229'),
    "threads": ("h100", "threads = { value = 2048", "threads = { value = 1024"),
    "syntax": ("h100", "[chip]", "[chip"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file(name: str, golden: Callable[[str, str], None]) -> None:
    origin, old, new = WRONG_FILES[name]
    text = shipped_text(origin)
    assert old in text
    Path("mine.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    result = invoke("devices", "validate", "mine.toml")
    assert result.exit_code == 2
    golden(f"devices_wrong_{name}.txt", result.stderr)


def test_measure(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setenv("BLOCKLANG_CONFIG_DIR", str(directory / "config"))
    before = find_device("host")
    assert before.global_bandwidth is None
    assert "Rates are not measured" in before.note
    result = invoke("doctor", "--measure")
    assert result.exit_code == 0, result.stderr
    path = directory / "config" / "devices" / "host.toml"
    assert f"wrote {path}" in result.stdout
    assert invoke("devices", "validate", str(path)).exit_code == 0
    host = find_device("host")
    assert host.cores == before.cores
    simd = host.engines["simd"]
    assert 1e8 < simd.clock_hz < 1e10
    assert simd.lanes is not None
    assert simd.clock_hz < simd.ops_per_second("f32") < 16 * simd.lanes.value * simd.clock_hz
    assert host.global_bandwidth is not None
    assert 1e8 < host.global_bandwidth < 1e13
    assert all(1e9 < cache.bandwidth.value < 1e13 for cache in host.caches.values() if cache.bandwidth)


def test_measure_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from blocklang.cli.measure import write_host
    from blocklang.diagnostics import UsageError
    from blocklang.target.host_device import Measured

    monkeypatch.setenv("BLOCKLANG_CONFIG_DIR", os.devnull)
    with pytest.raises(UsageError, match="cannot write") as caught:
        write_host(Measured(3e9, 1e11, {}, 1e10, "a test"))
    assert caught.value.help == "set BLOCKLANG_CONFIG_DIR to a directory of yours"

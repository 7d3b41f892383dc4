"""Reports as files: the form follows the name, and the JSON has the keys that docs/profile.md lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import blocklang as bl
from blocklang.diagnostics import UsageError
from blocklang.emulation.profile import Profile
from tests.emulator.reported import launch_product, launch_softmax, matmul_profile, untimed

DOCUMENT = Path(__file__).parents[2] / "docs" / "profile.md"
# Keys that are any name, below these.
NAMED = {
    "engines": "<name>",
    "counterfactuals": "<name>",
    "memory": "<space>",
    "products": "<dtype>",
    "model_error_percent": "<workload>",
}
TIMED = (
    "time_us",
    "engines",
    "bottleneck",
    "counterfactuals",
    "coalescing_percent",
    "bank_conflicts",
    "notes",
)
OF_THE_DEVICE = "model_error_percent.<workload>"


@pytest.fixture(scope="module", params=["trn2", "h100"])
def profile(request: pytest.FixtureRequest) -> Profile:
    with bl.emulate(request.param) as found:
        launch_product()
        launch_softmax()
    return found


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Every path to a value, as the document writes them."""
    if isinstance(value, dict) and value:
        below = path.removesuffix("[]").rpartition(".")[2]
        for name, inner in value.items():
            step = NAMED.get(below, str(name))
            yield from keys(inner, f"{path}.{step}" if path else step)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from keys(inner, f"{path}[]")
    else:
        yield path


def documented() -> set[str]:
    """The paths of the document; those of all launches together stand for each launch, too."""
    section: str = (
        DOCUMENT.read_text(encoding="utf-8").partition("## The JSON report")[2].partition("\n## ")[0]
    )
    first, second = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    whole = {line.split()[0] for line in first.splitlines()}
    own = {line.split()[0] for line in second.splitlines()}
    return whole | own | {f"launches[].{path}" for path in whole - {"device", OF_THE_DEVICE}}


def test_keys_are_those_of_the_document(profile: Profile) -> None:
    # These may be empty: a softmax has no products, a gpu may keep no block in memory, a line may only wait.
    empty = (".products", ".placement", "lines[].memory")
    assert {path for path in keys(profile.to_dict()) if not path.endswith(empty)} == documented()


def test_keys_without_a_time() -> None:
    found = set(keys(matmul_profile(untimed()).to_dict()))
    missing = {path for path in documented() if path.removeprefix("launches[].").startswith(TIMED)}
    missing |= {OF_THE_DEVICE} | {
        f"{prefix}lines[].{key}" for prefix in ("", "launches[].") for key in ("time_us", "cause")
    }
    assert found == documented() - missing


def test_sums(profile: Profile) -> None:
    report = profile.to_dict()
    for part in (report, *report["launches"]):
        assert sum(line["time_us"] for line in part["lines"]) == pytest.approx(part["time_us"], rel=0.02)
        for engine in part["engines"].values():
            share = 100 * engine["busy_us"] / part["time_us"]
            assert engine["active_percent"] == pytest.approx(share)
            assert 0 < share <= 100 + 1e-9
        best = min(part["counterfactuals"].items(), key=lambda item: item[1]["time_us"])
        assert part["bottleneck"] == best[0]
    assert report["time_us"] == pytest.approx(sum(each["time_us"] for each in report["launches"]))


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("run.json", '{\n  "device": "trn2"'),
        ("run.trace.json", '{"traceEvents":['),
        ("run.html", "<!DOCTYPE html>"),
        ("RUN.HTML", "<!DOCTYPE html>"),
        ("a.html.json", '{\n  "device"'),
    ],
)
def test_form_follows_the_name(name: str, beginning: str, tmp_path: Path) -> None:
    profile = matmul_profile("trn2")
    profile.save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(beginning)
    if name.lower().endswith(".json"):
        json.loads((tmp_path / name).read_text(encoding="utf-8"))
    profile.save(str(tmp_path / name))  # text is a path, too


@pytest.mark.parametrize("name", ["report.txt", "report", "report.trace", "html", "report.json.gz"])
def test_an_unknown_form(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"what kind of report .*{re.escape(name)} is") as caught:
        matmul_profile("trn2").save(tmp_path / name)
    assert caught.value.help == (
        "end it in .json (figures), .html (a page) or .trace.json (a timeline for Perfetto)"
    )
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*run\.html: No such file or directory") as caught:
        matmul_profile("trn2").save(tmp_path / "nowhere" / "run.html")
    assert caught.value.help == "choose another file for the report"

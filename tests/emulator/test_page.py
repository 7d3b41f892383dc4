"""The page: well-formed, self-contained, with everything escaped, and with the figures of the JSON report.

`test_browser` opens it in a browser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.diagnostics import Location
from blocklang.emulation.page import DETAILED, format_page
from blocklang.emulation.page.markup import change, duration, escape, rate
from blocklang.emulation.page.source import format_source
from blocklang.emulation.page.timeline import WIDTH, format_timeline, time_segments
from blocklang.emulation.profile import Profile
from blocklang.emulation.simulate import Event
from blocklang.emulation.stream import Instruction
from tests.emulator import reported
from tests.emulator.reported import launch_product, launch_softmax, matmul_profile, softmax_profile, untimed

VOID = {"meta", "link", "br", "img", "input", "hr"}
# What loads something, or runs: none of it may name anything outside the page.
OUTSIDE = {"src", "srcset", "href", "action", "data", "poster", "xlink:href"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    inside: list[Element] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())


class Page(HTMLParser):
    """Reads a page, strictly: every element is closed by its own tag, no attribute stands twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        assert all(re.fullmatch(r"[a-zA-Z][\w:-]*", name) for name in names), (tag, names)
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if self._open:
            self._open[-1].inside.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, *classes: str) -> list[Element]:
        return [e for e in self.elements if e.tag == tag and e.classes >= set(classes)]


@pytest.fixture(scope="module", params=["trn2", "h100"])
def profile(request: pytest.FixtureRequest) -> Profile:
    return matmul_profile(request.param)


def test_well_formed_and_alone(profile: Profile) -> None:
    text = format_page(profile)
    page = Page(text)
    for element in page.elements:
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            if name in OUTSIDE:
                assert (value or "").startswith(("#", "data:,"))
    assert "@import" not in text
    assert "url(" not in text
    assert "http" not in re.sub(r"<title>.*?</title>", "", text)
    assert len(page.all("script")) == len(page.all("style")) == 1
    names = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(names) == len(set(names))
    assert text.isprintable() or "\x00" not in text


def test_figures_are_those_of_the_json(profile: Profile) -> None:
    page = Page(format_page(profile))
    (launch,) = profile.to_dict()["launches"]
    (verdict,) = page.all("p", "verdict")
    assert duration(launch["time_us"] * 1e-6) in verdict.text
    assert launch["bottleneck"] in verdict.text
    text = page.all("body")[0].text
    for name, engine in launch["engines"].items():
        assert name in text
        assert f"{engine['active_percent']:.1f} %" in text
        assert change(launch["counterfactuals"][name]["percent"]) in text


def test_source_line_by_line(profile: Profile) -> None:
    page = Page(format_page(profile))
    lines = Path(reported.__file__).read_text(encoding="utf-8").splitlines()
    (launch,) = profile.to_dict()["launches"]
    rows = [row for row in page.all("tr") if row.inside and row.inside[-1].classes >= {"code"}]
    numbers = [int(row.inside[-2].text) for row in rows]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))  # the kernel, whole, and nothing else
    assert lines[numbers[0] - 1] == "@bl.jit"
    assert lines[numbers[-1] - 1].strip().startswith("tl.store(")
    for number, row in zip(numbers, rows, strict=True):
        assert row.inside[-1].text.removesuffix("hottest") == lines[number - 1]
    hottest = max(launch["lines"], key=lambda line: line["time_us"])
    (hot,) = [row for row in rows if "hot" in row.classes]
    assert int(hot.inside[-2].text) == hottest["line"]
    assert hottest["cause"] in hot.text
    assert duration(hottest["time_us"] * 1e-6) in hot.text


def test_a_bar_for_each_instruction(profile: Profile) -> None:
    page = Page(format_page(profile))
    (launch,) = profile.launches
    assert launch.estimate is not None
    events = [event for event in launch.estimate.events if event.end > event.start]
    bars = [bar for bar in page.all("rect") if "band" not in bar.classes]
    assert len(bars) == len(events)
    for bar in bars:
        x, width = float(bar.attributes["x"] or ""), float(bar.attributes["width"] or "")
        assert 0 <= x <= x + width <= WIDTH + 1e-3
        assert "reported.py:" in bar.inside[0].text
    rows = {bar.attributes["y"] for bar in bars}
    assert len(rows) == len({event.instruction.engine for event in events})


def test_roofline_and_placement() -> None:
    page = Page(format_page(matmul_profile("trn2")))
    assert len(page.all("circle", "point")) == 1
    assert any("tensor f32" in text.text for text in page.all("text"))
    boxes = {box.text for box in page.all("div", "box")}
    assert boxes == {"left", "right", "acc"}
    details = page.all("details")[0].text
    assert "acc <128x128xf32>" in details


def test_without_a_time() -> None:
    page = Page(format_page(matmul_profile(untimed())))
    assert "No time" in page.all("p", "verdict")[0].text
    assert not page.all("figure", "timeline")
    assert not page.all("figure", "roofline")
    assert "1 MiB" in page.all("main")[0].text


def test_several_launches() -> None:
    with bl.emulate("trn2") as profile:
        launch_product()
        launch_softmax()
        launch_product()
    page = Page(format_page(profile))
    assert page.all("h2")[0].text.startswith("3 launches in ")
    targets = {(link.attributes["href"] or "")[1:] for link in page.all("a")}
    assert targets == {e.attributes["id"] for e in page.elements if "id" in e.attributes}
    assert len(targets) == 2


def test_many_launches_show_the_longest() -> None:
    with bl.emulate("trn2") as profile:
        for rows in range(1, DETAILED + 4):
            launch_softmax(rows)
    page = Page(format_page(profile))
    assert len(page.all("section", "launch")) == DETAILED
    shown = [(e.attributes["href"] or "") for e in page.all("a")]
    assert shown == [f"#launch-{number}" for number in range(3, DETAILED + 3)]
    assert f"the {DETAILED} that take longest" in page.all("main")[0].text


# ---- odd text ----

ODD = '''import blocklang as bl
import blocklang.language as tl


@bl.jit
def odd(x, B: bl.constexpr):
    """</code></script><script>planted()</script><img src=x onerror="planted()">\x07"""
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + 1)  # </title>&lt;'"]]> <!-- é ß
'''


def test_odd_source_and_names(tmp_path: Path) -> None:
    script = tmp_path / "odd <b>&'\" name.py"
    script.write_text(ODD, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(ODD, str(script), "exec"), namespace)
    device = replace(untimed(), name="<i>mine</i>", title='a "chip" & <b>more</b>')
    for target in ("trn2", device):
        with bl.emulate(target) as profile:
            namespace["odd"][(2,)](np.zeros(64, np.float32), B=32)
        text = format_page(profile)
        page = Page(text)
        assert not page.all("img")
        assert not page.all("i", "x")
        assert len(page.all("script")) == 1
        assert "\x07" not in text
        code = [e.text for e in page.all("code")]
        assert ODD.splitlines()[-1] in code
        assert any("planted()</script>" in line and "\ufffd" in line for line in code)
        assert any(script.name in e.text for e in page.all("small"))
    assert "<i>mine</i>" in page.all("h1")[0].text
    assert 'a "chip" & <b>more</b>' in page.all("header")[0].text


def test_what_no_page_may_hold() -> None:
    assert escape("a\x00b\ud800c\x85") == "a\ufffdb\ufffdc\ufffd"
    assert escape("tab\tline\n") == "tab\tline\n"
    assert escape("<&'\">") == "&lt;&amp;&#x27;&quot;&gt;"


def test_a_file_that_is_gone() -> None:
    report = {"lines": [], "time_us": 1.0}
    assert "gone.py cannot be read" in format_source(report, ("/gone/gone.py", 3), {})


def test_a_file_that_python_cannot_read(tmp_path: Path) -> None:
    """The lines around, plain."""
    file = tmp_path / "broken.py"
    file.write_text("\n".join(["def f(:  # <"] + [f"line {n} '" for n in range(2, 30)]), encoding="utf-8")
    line = {"file": str(file), "line": 10, "text": "", "memory": {}, "time_us": 1.0, "cause": "dma"}
    page = Page(format_source({"lines": [line], "time_us": 1.0}, (str(file), 10), {}))
    assert [code.text for code in page.all("code")] == [f"line {n} '" for n in range(7, 14)]


# ---- time ----


def event(start: float, end: float, latency: float = 0.0) -> Event:
    instruction = Instruction("dma", end - start, latency=latency, location=Location("k.py", 1))
    return Event(instruction, 0, start, end)


def test_a_stretch_without_events_is_a_band() -> None:
    rounds = [event(0, 1), event(1, 3), event(90, 91)]
    segments = time_segments(rounds)
    assert [(first, last) for first, last, _ in segments] == [(0, 3), (90, 91)]
    begin = segments[1][2]
    assert 3 < begin < 3.2


def test_waiting_for_a_latency_is_no_band() -> None:
    assert time_segments([event(0, 1, latency=50), event(51, 52)]) == [(0, 52, 0)]


def test_a_band_and_its_caption() -> None:
    (launch,) = softmax_profile("trn2").launches
    assert launch.estimate is not None
    estimate = replace(launch.estimate, events=(event(0, 1e-6), event(90e-6, 91e-6)), seconds=91e-6)
    page = Page(format_timeline(estimate, {}))
    (band,) = page.all("rect", "band")
    assert band.inside[0].text.startswith("89 µs in the same rhythm")
    assert page.all("figcaption")[0].text.startswith("The whole launch: 2 instructions")
    cut = Page(format_timeline(replace(estimate, seconds=1.0), {}))
    assert cut.all("figcaption")[0].text.startswith("The first 91 µs of 1 s: 2 instructions")


def test_no_events() -> None:
    (launch,) = softmax_profile("trn2").launches
    assert launch.estimate is not None
    assert "No instructions" in format_timeline(replace(launch.estimate, events=()), {})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 ns"), (3.21e-8, "32.1 ns"), (1.5e-6, "1.5 µs"), (0.0123, "12.3 ms"), (7, "7 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 B/s"), (999, "999 B/s"), (3.35e12, "3.35 TB/s"), (4e18, "4e+03 PB/s")]
)
def test_rates(amount: float, text: str) -> None:
    assert rate(amount, "B") == text


def test_changes() -> None:
    assert change(-12.34) == "\u221212.3 %"
    assert change(-0.04) == "+0.0 %"

"""The page in a real browser: no error in its console, bars that zoom and pan, tips, both colour schemes.

Needs the extra `browser` (Selenium) and a Chromium with its driver, as `apt-get install chromium
chromium-driver` has them. With BLOCKLANG_SCREENSHOTS=DIRECTORY the pictures are kept, to be looked at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.emulator.reported import matmul_profile, softmax_profile

pytest.importorskip("selenium", reason="the extra 'browser' is not installed")

from selenium import webdriver
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="no Chromium with a driver is installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    home = tmp_path_factory.mktemp("browser")
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.add_argument(f"--user-data-dir={home}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_window_size(1280, 1000)
    yield driver
    driver.quit()


def opened(browser: Any, profile: Any, directory: Path) -> Any:
    """Open the page of a profile."""
    file = directory / "page.html"
    profile.save(file)
    browser.get(file.as_uri())
    WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".tools button"))
    return browser


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def picture(browser: Any, name: str) -> None:
    """Keep a picture of the whole page, if pictures are wanted."""
    if directory := os.environ.get("BLOCKLANG_SCREENSHOTS"):
        Path(directory).mkdir(parents=True, exist_ok=True)
        size = browser.get_window_size()
        height = browser.execute_script("return document.documentElement.scrollHeight")
        browser.set_window_size(size["width"], height + 140)
        browser.save_screenshot(str(Path(directory) / f"{name}.png"))
        browser.set_window_size(size["width"], size["height"])


def shown_width(browser: Any, bar: Any) -> float:
    return float(browser.execute_script("return arguments[0].getBoundingClientRect().width", bar))


@pytest.mark.parametrize("device", ["trn2", "h100"])
@pytest.mark.parametrize("make", [matmul_profile, softmax_profile])
def test_page_without_errors(make: Any, device: str, browser: Any, tmp_path: Path) -> None:
    profile = make(device)
    opened(browser, profile, tmp_path)
    (launch,) = profile.launches
    kept = [event for event in launch.estimate.events if event.end > event.start]
    bars = browser.find_elements(By.CSS_SELECTOR, ".timeline rect:not(.band)")
    assert len(bars) == min(len(kept), 2000)
    assert all(bar.size["width"] > 0 for bar in bars[:20])
    assert not errors(browser)
    picture(browser, f"{launch.kernel}_{device}")


def test_zoom_and_pan(browser: Any, tmp_path: Path) -> None:
    opened(browser, matmul_profile("trn2"), tmp_path)
    view = browser.find_element(By.CSS_SELECTOR, ".timeline .view")
    first = browser.find_element(By.CSS_SELECTOR, ".timeline rect:not(.band)")
    before = shown_width(browser, first)
    zoom_in, zoom_out, show_all = browser.find_elements(By.CSS_SELECTOR, ".tools button")
    zoom_in.click()
    assert shown_width(browser, first) == pytest.approx(2 * before, rel=0.01)
    zoom_out.click()
    assert shown_width(browser, first) == pytest.approx(before, rel=0.01)
    browser.execute_script("arguments[0].focus()", view)
    ActionChains(browser).send_keys("+", "+", "+").perform()
    assert shown_width(browser, first) == pytest.approx(8 * before, rel=0.01)
    left = first.location["x"]
    ActionChains(browser).send_keys(Keys.ARROW_LEFT).perform()
    assert first.location["x"] > left
    moved = first.location["x"]
    ActionChains(browser).drag_and_drop_by_offset(view, -200, 0).perform()
    assert first.location["x"] == pytest.approx(moved - 200, abs=3)
    assert browser.find_elements(By.CSS_SELECTOR, ".timeline .labels span")  # there is room for names now
    picture(browser, "zoomed")
    show_all.click()
    assert shown_width(browser, first) == pytest.approx(before, rel=0.01)
    assert not errors(browser)


def test_tip_and_line(browser: Any, tmp_path: Path) -> None:
    opened(browser, matmul_profile("h100"), tmp_path)
    bars = browser.find_elements(By.CSS_SELECTOR, ".timeline rect:not(.band)")
    widest = max(bars, key=lambda bar: shown_width(browser, bar))
    ActionChains(browser).move_to_element(widest).perform()
    tip = browser.find_element(By.CSS_SELECTOR, ".tip")
    assert tip.is_displayed()
    assert "reported.py:" in tip.text
    assert "tl.dot(" in tip.text
    row = browser.find_element(By.CSS_SELECTOR, ".source tr.hot .code")
    ActionChains(browser).move_to_element(row).perform()
    svg = browser.find_element(By.CSS_SELECTOR, ".timeline svg")
    assert svg.get_attribute("data-hot") == "c0"
    assert not errors(browser)


def test_dark(browser: Any, tmp_path: Path) -> None:
    def paper() -> str:
        script = "return getComputedStyle(document.body).backgroundColor"
        return str(browser.execute_script(script))

    opened(browser, matmul_profile("trn2"), tmp_path)
    light = paper()
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        assert paper() != light
        picture(browser, "dark")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_window(browser: Any, tmp_path: Path) -> None:
    """Nothing but tables and code, which scroll by themselves, is wider than the window."""
    opened(browser, matmul_profile("trn2"), tmp_path)
    browser.set_window_size(620, 900)
    try:
        script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(script) == 0
        picture(browser, "narrow")
    finally:
        browser.set_window_size(1280, 1000)


def test_readable_without_scripts(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    softmax_profile("trn2").save(file)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(file.as_uri())
        assert browser.find_elements(By.CSS_SELECTOR, ".timeline rect title")
        assert len(browser.find_elements(By.CSS_SELECTOR, ".timeline .axis span")) > 2
        picture(browser, "no_scripts")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_source_text_stays_text(browser: Any, tmp_path: Path) -> None:
    """A kernel whose lines, and whose file's name, are full of markup."""
    script = tmp_path / "odd <b>&'\" name.py"
    script.write_text(ODD, encoding="utf-8")
    x = np.zeros(64, np.float32)
    namespace: dict[str, Any] = {}
    exec(compile(ODD, str(script), "exec"), namespace)
    with bl.emulate("trn2") as profile:
        namespace["odd"][(2,)](x, B=32)
    opened(browser, profile, tmp_path)
    assert browser.title == "odd on trn2"
    assert browser.execute_script("return window.planted") is None
    codes = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".source code")]
    assert ODD.splitlines()[-1] in [code.rstrip() for code in codes] or ODD.splitlines()[-1].strip() in codes
    assert not errors(browser)


ODD = '''import blocklang as bl
import blocklang.language as tl


@bl.jit
def odd(x, B: bl.constexpr):
    """</code></script><script>window.planted = 1</script><img src=x onerror="window.planted = 2">"""
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + 1)  # </title>&lt;'"<script>window.planted = 3</script>
'''

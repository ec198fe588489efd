"""The page in Chromium, as a person uses it: no errors, and hostile names do nothing but stand there."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.page.model_page import model_page
from tests.cli.command import DIGITS
from tests.page.browser import Browser, chromium
from tests.page.models import HOSTILE, hostile_model, recurrent_model

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not there (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


def open_page(browser: Browser, model: onnxla.CompiledModel, folder: Path, title: str, **feeds: object) -> None:
    profile = model.profile(feeds, runs=1) if feeds else None
    page = folder / "page.html"
    page.write_text(model_page(model.programs[0], model.about, title, profile))
    browser.problems.clear()
    browser.open(page)


def detail(browser: Browser) -> str:
    return str(browser.script("document.getElementById('detail').innerText"))


def test_search_click_and_read(browser: Browser, tmp_path: Path) -> None:
    model = onnxla.compile(DIGITS, dims={"batch": 2}, options={"cache_dir": None})
    open_page(browser, model, tmp_path, "digits", image=np.zeros((2, 1, 8, 8), np.float32))
    assert browser.script("document.querySelectorAll('#steps button').length") == len(model.programs[0].steps)
    browser.click("#search")
    browser.type("conv2 maxpool")
    assert browser.script("document.getElementById('found').textContent").endswith("found")
    assert browser.script("document.querySelectorAll('.box.match').length") > 0
    browser.press("Enter", 13)
    assert "/conv2/MaxPool" in detail(browser)
    browser.press("Escape", 27)
    assert browser.script("document.querySelectorAll('.box.match').length") == 0

    browser.click(".box.contraction")
    assert "Conv · Relu" in detail(browser) and "GFLOP/s" in detail(browser)
    browser.wait("document.querySelectorAll('.codes button').length === 3")
    for language, word in (("2", "define void @onnxla_"), ("3", ".globl"), ("1", "fusion(")):
        browser.script(f"document.querySelector('.codes button:nth-child({language})').click()")
        assert word in browser.script("document.querySelector('aside pre').textContent")

    for tab, word in (
        ("time", "Where the time goes"),
        ("memory", "The arena over time"),
        ("hlo", "HloModule"),
        ("plan", "launch"),
    ):
        browser.click(f"[data-tab={tab}]")
        browser.wait(f"document.getElementById('{tab}').innerText.includes('{word}')")
    browser.click("[data-tab=graph]")
    closed = browser.script("document.querySelectorAll('.box').length")
    browser.click("#open")
    assert browser.script("document.querySelectorAll('.box').length") > closed
    assert browser.problems == []


def test_light_and_dark(browser: Browser, tmp_path: Path) -> None:
    model = onnxla.compile(recurrent_model(), options={"cache_dir": None})
    colours = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        open_page(browser, model, tmp_path, "recurrent", x=np.ones((12, 2, 6), np.float32))
        colours.add(browser.script("getComputedStyle(document.body).backgroundColor"))
    browser.click("#theme")
    assert browser.script("getComputedStyle(document.body).backgroundColor") in colours
    assert len(colours) == 2
    browser.click(".box.control text.type")
    assert "LSTM: while" in detail(browser) or "If" in detail(browser)
    assert browser.problems == []


def test_hostile_names_are_only_shown(browser: Browser, tmp_path: Path) -> None:
    model = onnxla.compile(hostile_model(), options={"cache_dir": None})
    open_page(browser, model, tmp_path, HOSTILE[0])
    for number in range(1, len(model.programs[0].steps) + 1):
        browser.click(f"#steps li:nth-child({number}) button")
    for tab in ("time", "memory", "hlo", "plan", "graph"):
        browser.click(f"[data-tab={tab}]")
    browser.click("#search")
    browser.type("onerror")
    browser.press("Enter", 13)
    assert "<img src=x onerror=" in detail(browser)
    assert browser.script("document.title").startswith("</script><img")
    assert browser.script("document.querySelectorAll('img, #hacked, svg[onload], iframe').length") == 0
    assert browser.problems == []

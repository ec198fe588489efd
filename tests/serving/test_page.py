"""The page of the server in Chromium, as a person sees it: no errors, and hostile names do nothing but stand there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onnxla.page.model_page import model_page
from onnxla.serving.requests import ModelStatus
from tests.cli.command import DIGITS
from tests.page.browser import Browser, chromium
from tests.page.models import HOSTILE
from tests.serving.running import Running
from tests.serving.small_engine import SmallEngine
from tests.serving.test_operations import INFER, ONE
from tests.serving.wire import ask


class HostileEngine(SmallEngine):
    """Has models whose names are markup, one that does not load, and one whose page is a real one."""

    def __init__(self) -> None:
        super().__init__(digits=dict, **{HOSTILE[0]: dict})

    def index(self) -> list[ModelStatus]:
        return [
            *super().index(),
            ModelStatus("broken_file", "3", "UNAVAILABLE", "<img src=x onerror=hacked()> is no model"),
        ]

    async def explain(self, model: str, version: str = "") -> str:
        import onnxla

        if model != "digits":
            return await super().explain(model, version)
        compiled = onnxla.compile(DIGITS, dims={"batch": 2}, options={"cache_dir": None})
        return model_page(compiled.programs[0], compiled.about, "digits")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(HostileEngine, grpc_port=-1) as running:
        for _ in range(5):
            assert ask(running, "POST", INFER, ONE).status == 200
        running.engine.measured.models[0].latency.add(0.002)
        yield running


def test_the_page_is_safe_without_a_browser_too(server: Running) -> None:
    answer = ask(server, "GET", "/")
    text = answer.body.decode()
    assert "<img" not in text and "&lt;img src=x onerror" in text
    assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "://" not in text  # nothing from elsewhere
    model = ask(server, "GET", "/page/models/echo/versions/1")
    assert "sandbox allow-scripts" in model.headers["content-security-policy"]
    assert ask(server, "GET", "/page/models/none/versions/1").status == 404


browsing = pytest.mark.skipif(chromium() is None, reason="Chromium is not there (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as one:
        yield one


def visit(browser: Browser, address: str, ready: str) -> None:
    browser.problems.clear()
    browser.call("Page.navigate", url=address)
    browser.wait(f"location.href === {address!r} && document.readyState === 'complete' && ({ready})")


@browsing
def test_models_and_numbers_are_shown_and_updated(server: Running, browser: Browser) -> None:
    visit(browser, f"http://{server.http}/", "!document.getElementById('updates').hidden")
    rows = browser.script("[...document.querySelectorAll('tbody tr')].map(r => r.innerText).join('\\n')")
    assert HOSTILE[0] in rows and "<img src=x onerror=hacked()> is no model" in rows
    assert browser.script("document.querySelectorAll('img, iframe, #hacked').length") == 0
    assert browser.script("document.title") == "onnxla: ready"

    def requests() -> Any:
        return browser.script(
            "document.querySelectorAll('tbody tr')[0 + [...document.querySelectorAll('tbody th')]"
            ".findIndex(h => h.textContent === 'echo')].children[3].textContent"
        )

    before = int(requests())
    assert ask(server, "POST", INFER, ONE).status == 200
    browser.wait(
        "[...document.querySelectorAll('tbody tr')].some(r => r.children[0].textContent === 'echo' && "
        f"r.children[3].textContent === '{before + 1}')"
    )
    browser.click("#pause")
    assert browser.script("document.getElementById('told').textContent") == "paused"
    assert browser.script("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
    assert browser.problems == []


@browsing
def test_everything_has_a_name_and_headings_are_in_order(server: Running, browser: Browser) -> None:
    visit(browser, f"http://{server.http}/", "true")
    nameless = "[...document.querySelectorAll('a, button')].filter(e => !(e.getAttribute('aria-label') || e.innerText))"
    assert browser.script(f"{nameless}.length") == 0
    assert browser.script("document.documentElement.lang") == "en"
    assert browser.script("document.querySelectorAll('h1').length") == 1
    assert browser.script("document.querySelectorAll('table caption, tbody th[scope=row]').length") > 3


@browsing
def test_light_and_dark(server: Running, browser: Browser, tmp_path: Path) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        visit(browser, f"http://{server.http}/", "true")
        colours.add(browser.script("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2 and browser.problems == []


@browsing
def test_the_inside_of_a_model_is_in_a_sandbox(server: Running, browser: Browser) -> None:
    visit(
        browser, f"http://{server.http}/page/models/digits/versions/1", "document.documentElement.dataset.ready === '1'"
    )
    assert browser.script("document.querySelectorAll('#steps button').length") > 3
    assert browser.script("self.origin") == "null"
    assert browser.problems == []

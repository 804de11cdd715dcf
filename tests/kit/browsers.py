"""Chromium, and pages of the console in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from caraway_serving import console

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
NEEDED = (
    pytest.mark.full,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.skipif(
        not (console.FOLDER / "index.html").exists(), reason="needs the console: make console"
    ),
)
"""The marks of tests of pages."""


class Watched:
    """A page of a browser, with its requests and its complaints."""

    def __init__(self, page: Any, base: str) -> None:
        self.page = page
        self.base = base
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, title: str) -> None:
        link = self.page.get_by_role("navigation", name="Pages").get_by_role(
            "link", name=title, exact=True
        )
        link.click()
        self.page.get_by_role("heading", level=1, name=title, exact=True).wait_for()

    def run(self, sql: str) -> None:
        self.page.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(sql)
        self.page.keyboard.press("Control+Enter")

    def foreign(self) -> list[str]:
        """Return the requests to other hosts."""
        own = urlsplit(self.base).netloc
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != own
        ]

    def violations(self) -> list[str]:
        """Return what breaks the rules of accessibility. The policy of the page must be off."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("rules => axe.run(document, {runOnly: rules})", list(RULES))
        assert found["passes"], "no rule was tried"
        return [f"{each['id']} {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


@contextmanager
def launched() -> Iterator[Any]:
    """Give a browser until the block ends."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()

"""The console without a mouse, on a phone, in a chosen theme and in other time zones."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.console_pages import PAGES
from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.processes import child

pytestmark = [*browsers.NEEDED]
VIEW = "views: [{name: far, sql: 'SELECT 7 AS seven'}]\n"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("keyboard")
    manifest = folder / "caraway.yaml"
    manifest.write_text(f"version: v1\nkind: Caraway\nname: keyboard\n{VIEW}")
    with child(folder, manifest) as running:
        yield f"http://{running.addresses['http']}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


def opened(browser: Any, runtime: str, place: str = "", **context: Any) -> Watched:
    watched = Watched(browser.new_context(**context).new_page(), runtime)
    watched.page.goto(runtime + place)
    # A key that is pressed before the page is there is lost.
    watched.page.get_by_role("main").wait_for()
    return watched


def test_the_palette_reaches_every_page_and_every_table(browser: Any, runtime: str) -> None:
    watched = opened(browser, runtime)
    keys = watched.page.keyboard
    for title in PAGES[::-1]:
        keys.press("Control+k")
        watched.page.get_by_role("combobox", name="Go to").wait_for()
        keys.type(title)
        watched.page.get_by_role("option", name=title).first.wait_for()
        keys.press("Enter")
        watched.page.get_by_role("heading", level=1, name=title, exact=True).wait_for()
    keys.press("Control+k")
    keys.type("far")
    watched.page.get_by_role("option", name="far").wait_for()
    keys.press("Enter")
    watched.page.get_by_role("heading", name="far", exact=True).wait_for()
    keys.press("Control+k")
    keys.press("Escape")
    watched.page.get_by_role("dialog", name="Go to").wait_for(state="hidden")
    assert watched.errors == []
    watched.page.context.close()


def tab_to(watched: Watched, name: str) -> None:
    """Press Tab until what has the focus has a name."""
    for _ in range(60):
        focused = watched.page.evaluate(
            "() => { const at = document.activeElement;"
            " return at?.getAttribute('aria-label') || at?.textContent || ''; }"
        )
        if focused == name:
            return
        watched.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach '{name}'")


def test_statements_are_written_run_and_read_without_a_mouse(browser: Any, runtime: str) -> None:
    watched = opened(browser, runtime, "#/sql")
    keys = watched.page.keyboard
    watched.page.locator(".cm-content").wait_for()
    # The editor has the focus from the beginning.
    keys.press("Control+a")
    keys.type("SELECT 1 AS a, 'word' AS b")
    keys.press("Control+Enter")
    watched.page.get_by_role("gridcell", name="word").wait_for()
    keys.press("Escape")
    keys.press("Tab")
    tab_to(watched, "Explain")
    keys.press("Enter")
    watched.page.locator(".plan-node").first.wait_for()
    tab_to(watched, "History")
    keys.press("Enter")
    watched.page.get_by_role("region", name="History").wait_for()
    keys.press("Shift+Tab")
    keys.press("Shift+Tab")
    tab_to(watched, "History")
    keys.press("Enter")
    watched.page.locator(".cm-content").focus()
    keys.press("Control+Enter")
    watched.page.get_by_role("gridcell", name="word").wait_for()
    keys.press("Escape")
    keys.press("Tab")
    tab_to(watched, "Rows")
    tab_to(watched, "Export CSV")
    with watched.page.expect_download():
        keys.press("Enter")
    watched.page.get_by_role("grid").focus()
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    chosen = watched.page.get_by_role("gridcell", selected=True)
    assert chosen.text_content() == "word"
    assert watched.errors == []
    watched.page.context.close()


def test_nothing_of_a_page_is_wider_than_a_phone(browser: Any, runtime: str) -> None:
    watched = opened(browser, runtime, viewport={"width": 360, "height": 740})
    for title in PAGES:
        watched.page.get_by_role("button", name="Menu").click()
        watched.open(title)
        watched.page.wait_for_load_state("networkidle")
        width = watched.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, f"{title} is {width} wide"
    watched.page.context.close()


def test_chosen_colours_are_there_before_anything_is_drawn(browser: Any, runtime: str) -> None:
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(runtime)
    page.get_by_label("Colours").select_option("dark")
    # Everything that the page does comes with its scripts, which are held here.
    page.route("**/console/index-*.js", lambda route: None)
    page.reload(wait_until="commit")
    page.wait_for_selector("#root", state="attached")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("document.getElementById('root').children.length") == 0
    color = "getComputedStyle(document.documentElement).backgroundColor"
    page.wait_for_function(f"{color} !== 'rgba(0, 0, 0, 0)'")
    red = int(page.evaluate(color).removeprefix("rgb(").partition(",")[0])
    assert red < 60
    context.close()


def test_times_are_in_the_zone_of_the_reader_and_in_utc(browser: Any, runtime: str) -> None:
    shown = []
    for zone in ("UTC", "Asia/Tokyo"):
        watched = opened(browser, runtime, "#/cluster", timezone_id=zone, locale="en-GB")
        time = watched.page.get_by_role("region", name="Engine processes").locator("time").first
        time.wait_for()
        shown.append((time.text_content(), time.get_attribute("title")))
        watched.page.context.close()
    (utc, title), (tokyo, same) = shown
    assert utc != tokyo
    assert title == same and title.endswith(" UTC")


def test_one_key_skips_the_navigation(browser: Any, runtime: str) -> None:
    watched = opened(browser, runtime)
    watched.page.get_by_text("The runtime is ready.").wait_for()
    watched.page.keyboard.press("Tab")
    watched.page.keyboard.press("Enter")
    assert watched.page.evaluate("document.activeElement.id") == "content"
    watched.page.context.close()

"""The pages of the console for objects that are missing, refused or large."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.console_pages import PAGES
from tests.kit import browsers, prefix_proxy
from tests.kit.browsers import Watched
from tests.kit.processes import Child, child

pytestmark = [*browsers.NEEDED]
MILLION = 1_000_000
TABLES = 10_000
KEYS = "runtime: {auth: {api-key: {enabled: true, keys: ['reader:ro', 'writer:rw']}}}\n"
FAST = "{from: 'file:few.json', name: few, acceleration: {enabled: true}}"
LONG_TEXT = "x" * 1_000_000
ROWS = [
    {"id": 1, "text": "<script>document.title='taken'</script>"},
    {"id": 2, "text": "a\x00b\x1b[31m\r\nc"},
    {"id": 3, "text": "\u202eabc\u2066"},
    {"id": 4, "text": LONG_TEXT},
    {"id": 5, "text": "javascript:alert(1)"},
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


def write(folder: Path, content: str) -> Path:
    (folder / "few.json").write_text(json.dumps(ROWS))
    manifest = folder / "caraway.yaml"
    manifest.write_text(f"version: v1\nkind: Caraway\nname: states\n{content}")
    return manifest


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder = tmp_path_factory.mktemp("states")
    with child(folder, write(folder, f"{KEYS}datasets: [{FAST}]\n")) as running:
        yield running


def opened(browser: Any, base: str, place: str = "") -> Watched:
    page = Watched(browser.new_context().new_page(), base)
    page.page.goto(base + place)
    return page


def closed(watched: Watched) -> None:
    assert watched.errors == []
    assert watched.foreign() == []
    watched.page.context.close()


def give_key(watched: Watched, key: str) -> None:
    dialog = watched.page.get_by_role("dialog", name="API key")
    dialog.get_by_label("Key").first.fill(key)
    dialog.get_by_role("button", name="Use the key").click()
    dialog.wait_for(state="hidden")


@pytest.mark.parametrize(("key", "is_offered"), [("reader", False), ("writer", True)])
def test_what_a_read_only_key_may_not_do_is_not_offered(
    browser: Any, runtime: Child, key: str, is_offered: bool
) -> None:
    watched = opened(browser, f"http://{runtime.addresses['http']}/", "#/data/public/few")
    give_key(watched, key)
    watched.page.get_by_test_id("row-count").get_by_text("5 rows").wait_for()
    refresh = watched.page.get_by_role("button", name="Refresh now")
    running = watched.page.get_by_role("heading", name="Running")
    watched.page.get_by_role("heading", name="Acceleration").wait_for()
    assert refresh.count() == is_offered
    watched.open("Queries and jobs")
    watched.page.get_by_role("heading", name="Finished").wait_for()
    assert running.count() == is_offered
    assert watched.page.get_by_role("alert").count() == 0
    # Reading works with both; the words of a refusal are shown.
    watched.open("SQL")
    watched.run("SELECT count(*) FROM few")
    watched.page.get_by_role("gridcell", name="5", exact=True).wait_for()
    watched.run("INSERT INTO few VALUES (6, 'six')")
    watched.page.get_by_role("alert").wait_for()
    closed(watched)


def test_a_table_that_does_not_exist_is_said(browser: Any, runtime: Child) -> None:
    watched = opened(browser, f"http://{runtime.addresses['http']}/", "#/data/public/nothing")
    give_key(watched, "reader")
    watched.page.get_by_text("not found").first.wait_for()
    watched.page.goto(f"{watched.base}#/nowhere")
    watched.page.get_by_text("There is no such page.").wait_for()
    watched.page.goto(f"{watched.base}#/queries/00000000-0000-0000-0000-000000000000")
    watched.page.get_by_role("alert").wait_for()
    closed(watched)


def test_hostile_cells_are_text_and_long_ones_are_cut(browser: Any, runtime: Child) -> None:
    watched = opened(browser, f"http://{runtime.addresses['http']}/", "#/sql")
    give_key(watched, "reader")
    watched.run("SELECT text FROM few ORDER BY id")
    cells = watched.page.get_by_role("gridcell")
    cells.nth(4).wait_for()
    shown = cells.all_text_contents()
    assert shown[0] == ROWS[0]["text"]
    assert not any(character in text for text in shown for character in "\x00\x1b\u202e\u2066")
    assert len(shown[3]) < 10_000
    assert watched.page.title() == "SQL · Caraway"
    closed(watched)


def test_a_page_without_its_runtime_says_so_and_comes_back(browser: Any, runtime: Child) -> None:
    """No page waits for ever, and none needs a reload when the runtime is back."""
    watched = opened(browser, f"http://{runtime.addresses['http']}/")
    give_key(watched, "writer")
    for title in PAGES:
        watched.open(title)
        watched.page.wait_for_load_state("networkidle")
    watched.page.context.set_offline(True)
    for title in PAGES:
        if title in ("SQL", "Search"):
            continue
        watched.open(title)
        watched.page.get_by_text("does not respond").first.wait_for()
        watched.page.get_by_text("Loading").first.wait_for(state="hidden")
    watched.open("SQL")
    watched.run("SELECT 1")
    watched.page.get_by_text("does not respond").wait_for()
    watched.page.context.set_offline(False)
    watched.run("SELECT 41 + 1")
    watched.page.get_by_role("gridcell", name="42").wait_for()
    watched.open("Home")
    watched.page.get_by_text("The runtime is ready.").wait_for()
    watched.page.get_by_text("does not respond").first.wait_for(state="detached")
    closed(watched)


def test_a_runtime_that_dies_under_a_statement_is_said(browser: Any, tmp_path: Path) -> None:
    with child(tmp_path, write(tmp_path, "datasets: []\n")) as running:
        watched = opened(browser, f"http://{running.addresses['http']}/", "#/sql")
        watched.run(
            "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b"
        )
        watched.page.get_by_role("button", name="Cancel").wait_for()
        running.signal(signal.SIGKILL)
        watched.page.get_by_role("alert").get_by_text("does not respond").wait_for()
        # A part of the page that is not there yet cannot be loaded now.
        watched.page.get_by_role("link", name="Cluster", exact=True).click()
        watched.page.get_by_text("cannot be loaded").wait_for()
        closed(watched)


def test_an_empty_runtime_shows_the_first_steps(browser: Any, tmp_path: Path) -> None:
    with child(tmp_path, write(tmp_path, "datasets: []\n")) as running:
        watched = opened(browser, f"http://{running.addresses['http']}/")
        watched.page.get_by_role("heading", name="First steps").wait_for()
        for title, words in (
            ("Data", "The manifest has no datasets."),
            ("Queries and jobs", "No jobs."),
            ("Functions, models, workers", "The manifest has no models."),
        ):
            watched.open(title)
            watched.page.get_by_text(words).first.wait_for()
        closed(watched)


def test_everything_works_below_the_prefix_of_a_proxy(browser: Any, runtime: Child) -> None:
    target = f"http://{runtime.addresses['http']}"
    with prefix_proxy.proxied(target, "/team/caraway") as base:
        watched = opened(browser, base)
        give_key(watched, "writer")
        for title in PAGES:
            watched.open(title)
            watched.page.wait_for_load_state("networkidle")
            assert watched.page.get_by_text("cannot be loaded").count() == 0
        watched.open("SQL")
        watched.run("SELECT count(*) FROM few")
        watched.page.get_by_role("gridcell", name="5", exact=True).wait_for()
        assert [url for url in watched.requests if not url.startswith(base)] == []
        closed(watched)


def test_rows_that_end_early_are_said_to_be_incomplete(browser: Any, runtime: Child) -> None:
    target = f"http://{runtime.addresses['http']}"
    with prefix_proxy.proxied(target, "/broken", breaks="/v1/sql") as base:
        watched = opened(browser, base, "#/sql")
        give_key(watched, "reader")
        watched.run(f"SELECT value AS n FROM generate_series(1, {MILLION})")
        alert = watched.page.get_by_role("alert")
        alert.get_by_text("run the statement again").wait_for()
        assert watched.page.locator(".outcome-line").get_by_text("failed").count() == 1
        closed(watched)


def test_a_million_rows_are_scrolled(browser: Any, runtime: Child) -> None:
    watched = opened(browser, f"http://{runtime.addresses['http']}/", "#/sql")
    give_key(watched, "reader")
    watched.run(f"SELECT value AS n, value % 7 AS g FROM generate_series(1, {MILLION}) ORDER BY n")
    watched.page.get_by_test_id("row-count").get_by_text(f"{MILLION:,} rows").wait_for()
    grid = watched.page.locator(".grid")
    cell = watched.page.get_by_role("gridcell")
    grid.evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    watched.page.get_by_role("gridcell", name=f"{MILLION}", exact=True).wait_for()
    assert cell.count() < 200
    # Each place has its own rows, whatever was shown before.
    for share in (0.25, 0.75, 0.5):
        grid.evaluate("(grid, share) => { grid.scrollTop = grid.scrollHeight * share; }", share)
        near = watched.page.wait_for_function(
            """([wanted, all]) => {
              const first = Number(document.querySelector('[role=gridcell]')?.textContent);
              return Math.abs(first - wanted * all) < all / 100 && first;
            }""",
            arg=[share, MILLION],
        ).json_value()
        numbers = [int(text) for text in cell.all_text_contents()[::2]]
        assert numbers == list(range(near, near + len(numbers)))
    closed(watched)


def test_ten_thousand_tables_are_in_the_tree(browser: Any, tmp_path: Path) -> None:
    views = "".join(f"  - {{name: v{each:05}, sql: 'SELECT 1 AS a'}}\n" for each in range(TABLES))
    with child(tmp_path, write(tmp_path, f"views:\n{views}")) as running:
        watched = opened(browser, f"http://{running.addresses['http']}/", "#/data")
        tree = watched.page.get_by_role("navigation", name="Tables")
        tree.get_by_role("link", name="v00000").wait_for()
        assert tree.get_by_role("link").count() < 1_000
        tree.get_by_role("searchbox").fill(f"v{TABLES - 1:05}")
        tree.get_by_role("link", name=f"v{TABLES - 1:05}").click()
        watched.page.get_by_role("region", name="Columns").get_by_text("Int64").wait_for()
        watched.page.get_by_test_id("row-count").get_by_text("1 rows").wait_for()
        closed(watched)


def polls(watched: Watched, seconds: int) -> int:
    """Return how many requests a page sends in a span of its clock."""
    before = len(watched.requests)
    for _ in range(seconds // 5):
        watched.page.clock.run_for(5_000)
        watched.page.wait_for_load_state("networkidle")
    return len(watched.requests) - before


def test_pages_that_nobody_uses_ask_less(browser: Any, runtime: Child) -> None:
    watched = Watched(browser.new_context().new_page(), f"http://{runtime.addresses['http']}/")
    watched.page.clock.install()
    watched.page.goto(watched.base)
    give_key(watched, "reader")
    watched.page.get_by_text("The runtime is ready.").wait_for()
    watched.page.mouse.move(1, 1)
    used = polls(watched, 60)
    polls(watched, 60)
    idle = polls(watched, 60)
    assert 0 < idle <= used / 3
    # A returning user sees the present at once.
    with watched.page.expect_response("**/v1/ready**"):
        watched.page.mouse.move(50, 50)
    assert polls(watched, 30) > 0
    hide(watched, True)
    assert polls(watched, 120) == 0
    with watched.page.expect_response("**/v1/ready**"):
        hide(watched, False)
    closed(watched)


def hide(watched: Watched, is_hidden: bool) -> None:
    """Let the page believe that its tab is hidden."""
    watched.page.evaluate(
        """state => {
          const set = (name, value) =>
            Object.defineProperty(document, name, {value, configurable: true});
          set('visibilityState', state);
          set('hidden', state === 'hidden');
          document.dispatchEvent(new Event('visibilitychange', {bubbles: true}));
        }""",
        "hidden" if is_hidden else "visible",
    )

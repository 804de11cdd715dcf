"""The console in Chromium, over real runtimes: `make test-console`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.processes import child

ROWS = 300_000
PAGES = (
    "Home", "SQL", "Data", "Queries and jobs", "Cluster", "Search", "Chat and questions",
    "Tools and MCP", "Functions, models, workers",
)  # fmt: skip
HOSTILE = "<img src=x onerror=\"document.title='taken'\">\u202etxet"
pytestmark = [*browsers.NEEDED]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("console")
    numbers = pa.table(
        {"n": pa.array(range(ROWS), pa.int64()), "t": [f"text {n % 7}" for n in range(ROWS)]}
    )
    pq.write_table(numbers, made / "numbers.parquet")
    (made / "odd.json").write_text(
        json.dumps([{"id": 1, "name": HOSTILE}, {"id": 2, "name": None}])
    )
    (made / "caraway.yaml").write_text(
        "version: v1\nkind: Caraway\nname: shop\ndatasets:\n"
        "  - {from: 'file:numbers.parquet', name: numbers}\n"
        "  - {from: 'file:odd.json', name: odd}\n"
        "  - {from: 'file:missing.csv', name: missing}\n"
    )
    return made


@pytest.fixture(scope="module")
def runtime(folder: Path) -> Iterator[str]:
    with child(folder, folder / "caraway.yaml") as running:
        yield f"http://{running.addresses['http']}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture
def watched(browser: Any, runtime: str) -> Iterator[Watched]:
    context = browser.new_context()
    page = Watched(context.new_page(), runtime)
    page.page.goto(runtime)
    yield page
    assert page.errors == []
    assert page.foreign() == []
    context.close()


def test_every_page_opens_by_its_title(watched: Watched) -> None:
    for title in PAGES:
        watched.open(title)
        assert watched.page.title() == f"{title} · Caraway"
    watched.open("Home")
    attention = watched.page.get_by_text("missing.csv")
    attention.first.wait_for()


def test_ctrl_enter_runs_the_statement_at_the_cursor(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT n, t FROM numbers ORDER BY n")
    count = watched.page.get_by_test_id("row-count")
    count.get_by_text(f"{ROWS:,} rows").wait_for()
    cells = watched.page.get_by_role("gridcell")
    assert cells.first.text_content() == "0"
    # Only what is seen is in the page.
    assert cells.count() < 200
    watched.page.get_by_role("button", name="Sort by n").click()
    watched.page.get_by_role("button", name="Sort by n").click()
    watched.page.get_by_role("gridcell", name=f"{ROWS - 1}", exact=True).wait_for()
    watched.page.get_by_role("button", name="Summary of t").click()
    summary = watched.page.get_by_role("complementary", name="Summary of t")
    assert "7" in (summary.text_content() or "")
    summary.get_by_role("button", name="Close").click()
    watched.page.get_by_role("searchbox", name="Filter the fetched rows").fill("text 6")
    count.get_by_text(f"{sum(n % 7 == 6 for n in range(ROWS)):,} of").wait_for()


def test_what_a_cell_holds_is_text(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT name FROM odd ORDER BY id")
    cell = watched.page.get_by_role("gridcell").first
    cell.wait_for()
    assert cell.text_content() == HOSTILE.replace("\u202e", "\ufffd")
    assert watched.page.get_by_role("gridcell").nth(1).text_content() == "null"
    assert watched.page.title() == "SQL · Caraway"


def test_an_error_is_said_and_marked(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT *\nFROM nothing")
    alert = watched.page.get_by_role("alert")
    alert.wait_for()
    assert "table 'nothing' not found" in (alert.text_content() or "")
    assert watched.page.locator(".cm-error").text_content() == "nothing"


def test_a_plan_is_a_graph_and_a_job_has_rows(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT t, count(*) FROM numbers GROUP BY t")
    watched.page.get_by_test_id("row-count").get_by_text("7 rows").wait_for()
    watched.page.get_by_role("button", name="Analyze").click()
    node = watched.page.get_by_role("button", name="AggregateExec").first
    node.click()
    assert "output_rows" in (watched.page.get_by_role("complementary").text_content() or "")
    watched.page.get_by_role("checkbox", name="as a job").check()
    watched.page.get_by_role("button", name="Run", exact=True).click()
    watched.page.get_by_test_id("row-count").get_by_text("7 rows").wait_for()
    watched.open("Queries and jobs")
    jobs = watched.page.get_by_role("region", name="Jobs", exact=True)
    jobs.get_by_role("link").first.click()
    watched.page.get_by_role("region", name="First rows").get_by_text("text 6").wait_for()


def test_a_statement_that_is_cancelled_ends_at_the_runtime(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n + c.n < 0")
    watched.page.get_by_role("button", name="Cancel").click()
    watched.page.get_by_text("cancelled").wait_for()
    watched.open("Queries and jobs")
    watched.page.get_by_text("No statement of yours is running.").wait_for()


def test_tabs_survive_a_reload_and_links_open_statements(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT 42 AS kept")
    watched.page.get_by_role("gridcell", name="42").wait_for()
    watched.page.reload()
    watched.page.locator(".cm-content").get_by_text("kept").wait_for()
    watched.page.goto(f"{watched.base}#/sql?q=U0VMRUNUIDQz")
    watched.page.locator(".cm-content").get_by_text("SELECT 43").wait_for()
    # A link runs nothing.
    assert watched.page.get_by_role("gridcell").count() == 0


def test_the_tree_leads_to_a_table_and_to_its_rows(watched: Watched) -> None:
    watched.open("Data")
    tree = watched.page.get_by_role("navigation", name="Tables")
    tree.get_by_role("link", name="numbers").click()
    watched.page.get_by_role("region", name="Columns").get_by_text("Int64").wait_for()
    watched.page.get_by_test_id("row-count").get_by_text("100 rows").wait_for()
    watched.page.keyboard.press("Control+k")
    watched.page.get_by_role("combobox", name="Go to").fill("odd")
    watched.page.keyboard.press("Enter")
    watched.page.get_by_role("heading", name="odd", exact=True).wait_for()


def test_a_phone_has_a_menu(browser: Any, runtime: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 780})
    page = context.new_page()
    page.goto(runtime)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="SQL", exact=True).click()
    page.locator(".cm-content").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


@pytest.mark.skipif(not browsers.AXE.exists(), reason="needs axe-core: make check-console")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_keeps_the_rules_of_accessibility(
    browser: Any, runtime: str, scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    watched = Watched(context.new_page(), runtime)
    watched.page.goto(runtime)
    found = []
    for title in PAGES:
        watched.open(title)
        watched.page.wait_for_load_state("networkidle")
        if title == "SQL":
            watched.run("SELECT * FROM numbers LIMIT 100")
            watched.page.get_by_role("gridcell").first.wait_for()
        found += [f"{title}: {each}" for each in watched.violations()]
    assert found == []
    context.close()


def test_keys_are_asked_for_and_never_in_an_address(browser: Any, tmp_path: Path) -> None:
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(
        "version: v1\nkind: Caraway\nname: locked\n"
        "runtime: {auth: {api-key: {enabled: true, keys: ['opensesame']}}}\ndatasets: []\n"
    )
    with child(tmp_path, manifest) as running:
        context = browser.new_context()
        watched = Watched(context.new_page(), f"http://{running.addresses['http']}/")
        watched.page.goto(watched.base)
        dialog = watched.page.get_by_role("dialog", name="API key")
        dialog.get_by_label("Key").first.fill("wrong")
        dialog.get_by_role("button", name="Use the key").click()
        dialog.get_by_text("does not accept").wait_for()
        dialog.get_by_label("Key").first.fill("opensesame")
        dialog.get_by_role("button", name="Use the key").click()
        watched.page.get_by_text("The runtime is ready.").wait_for()
        assert not any("opensesame" in url for url in watched.requests)
        assert watched.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})") == "{}"
        assert "opensesame" not in running.logged()
        context.close()

"""The console in Chromium, over real runtimes: `make test-console`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.console_pages import PAGES
from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.processes import child

ROWS = 300_000
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
    notes = ["How to rotate a key", "Pianos have keys", "Nothing of that"]
    (made / "notes.json").write_text(
        json.dumps([{"id": number, "body": body} for number, body in enumerate(notes)])
    )
    (made / "caraway.yaml").write_text(
        "version: v1\nkind: Caraway\nname: shop\ndatasets:\n"
        "  - {from: 'file:numbers.parquet', name: numbers}\n"
        "  - {from: 'file:odd.json', name: odd}\n"
        "  - {from: 'file:missing.csv', name: missing}\n"
        "  - from: file:odd.json\n"
        "    name: kept\n"
        "    params: {file_format: json}\n"
        "    acceleration: {enabled: true, primary_key: id}\n"
        "  - from: file:notes.json\n"
        "    name: notes\n"
        "    acceleration: {enabled: true, primary_key: id}\n"
        "    columns: [{name: body, full_text_search: {enabled: true, row_id: id}}]\n"
        "views:\n"
        "  - {name: few, sql: SELECT t FROM numbers WHERE n < 3}\n"
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
    # The page has only the visible rows.
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


def test_a_table_says_what_it_reads_and_what_reads_it(watched: Watched) -> None:
    watched.page.goto(f"{watched.base}#/data/public/numbers")
    lineage = watched.page.get_by_role("region", name="Lineage")
    lineage.get_by_role("link", name="few").click()
    watched.page.get_by_role("heading", name="few", exact=True).wait_for()
    lineage.get_by_role("link", name="numbers").wait_for()
    watched.page.get_by_text("Query", exact=True).click()
    watched.page.get_by_text("SELECT t FROM numbers WHERE n < 3").first.wait_for()


def test_a_dataset_shows_its_indexes_partitions_and_definition(watched: Watched) -> None:
    watched.page.goto(f"{watched.base}#/data/public/kept")
    indexes = watched.page.get_by_role("region", name="Indexes")
    indexes.get_by_text("primary key").wait_for()
    partitions = watched.page.get_by_role("region", name="Partitions")
    partitions.get_by_role("row").nth(1).wait_for()
    watched.page.get_by_text("In the manifest: caraway.yaml").click()
    said = watched.page.get_by_text("primary_key: id")
    said.wait_for()
    assert "file_format: (hidden)" in (said.text_content() or "")


def test_an_accelerated_dataset_says_how_far_it_is_behind(watched: Watched) -> None:
    oldest = watched.page.get_by_text("Oldest rows")
    oldest.wait_for()
    assert "behind its source; last change" in (oldest.text_content() or "")
    oldest.get_by_role("link").click()
    lag = watched.page.get_by_role("region", name="Acceleration").get_by_text("last change")
    assert "behind its source" in (lag.text_content() or "")
    title = lag.locator("time").get_attribute("title") or ""
    assert title.endswith(" UTC")


def test_home_lists_datasets_that_are_late(watched: Watched) -> None:
    lag = {"behind_ms": 7_200_000, "last_change_at": "2026-11-27T08:15:00Z", "is_late": True}
    dataset = {
        "from": "file:a.csv", "name": "slow", "replication_enabled": False,
        "acceleration_enabled": True, "status": "ready", "lag": lag,
    }  # fmt: skip
    watched.page.route("**/v1/datasets?status=true", lambda route: route.fulfill(json=[dataset]))
    watched.page.reload()
    item = watched.page.get_by_role("listitem").filter(has_text="slow")
    item.get_by_text("2 hours behind its source, late").wait_for()
    assert item.locator("time").get_attribute("title") == "2026-11-27 08:15:00 UTC"
    oldest = watched.page.get_by_text("Oldest rows")
    assert "slow, 2 hours behind its source" in (oldest.text_content() or "")


def test_a_statement_leads_to_its_trace(watched: Watched) -> None:
    watched.open("SQL")
    watched.run("SELECT 4711 AS traced")
    watched.page.get_by_role("gridcell", name="4711").wait_for()
    watched.page.get_by_role("link", name="trace").click()
    spans = watched.page.locator(".spans")
    spans.get_by_text("sql_query").wait_for()
    spans.get_by_text("SELECT 4711 AS traced").wait_for()
    watched.open("Queries and jobs")
    finished = watched.page.get_by_role("region", name="Finished tasks")
    finished.get_by_text("SELECT 4711 AS traced").first.wait_for()
    watched.page.get_by_role("combobox", name="Task").select_option("worker")
    watched.page.get_by_text("No finished task fits.").wait_for()
    slowest = watched.page.get_by_role("region", name="Slowest statements")
    slowest.get_by_role("row").nth(1).wait_for()


STAGES = {
    "query_id": "q",
    "stages": [
        {
            "name": "s1", "note": "scans numbers", "state": "running", "reads": [],
            "tables": ["numbers"], "tasks_done": 1, "tasks_total": 4, "rows": 1234, "bytes": 9,
            "began_at_ms": 1.0, "ended_at_ms": 2.0,
            "executors": [
                {"executor_id": "e1", "tasks": 1, "rows": 1234, "bytes": 9, "elapsed_ms": 1.0}
            ],
        },
        {
            "name": "root", "note": "answer", "state": "waiting", "reads": ["s1"], "tables": [],
            "tasks_done": 0, "tasks_total": 1, "rows": 0, "bytes": 0, "began_at_ms": None,
            "ended_at_ms": None, "executors": [],
        },
    ],
}  # fmt: skip


def test_a_statement_that_runs_shows_its_stages(watched: Watched) -> None:
    """The test plays the answers of a cluster; `test_stages` tests the real ones."""
    asked: list[Any] = []

    def answer(route: Any) -> None:
        asked.append(route.request)
        body = f"event: stages\ndata: {json.dumps(STAGES)}\n\n"
        route.fulfill(body=body, content_type="text/event-stream")

    watched.page.route("**/stages", answer)
    watched.open("SQL")
    with watched.page.expect_request("**/v1/sql") as sent:
        watched.run("SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n < c.n")
    node = watched.page.get_by_role("button", name="scans numbers 1 of 4 · 1,234 rows")
    node.click()
    chosen = watched.page.get_by_role("complementary", name="The chosen node")
    chosen.get_by_text("e1").wait_for()
    watched.page.get_by_role("button", name="answer waits").wait_for()
    trace = sent.value.headers["traceparent"].split("-")[1]
    assert asked[0].url.endswith(f"/v1/sql/{trace}/stages")
    watched.page.get_by_role("button", name="Cancel").click()
    watched.page.get_by_text("cancelled").wait_for()
    assert watched.page.get_by_role("region", name="Stages").count() == 0


def test_a_search_shows_what_matched_and_why(watched: Watched) -> None:
    watched.open("Search")
    watched.page.get_by_role("searchbox", name="Text").fill("rotate key")
    watched.page.get_by_role("combobox", name="In").select_option("notes")
    watched.page.get_by_role("button", name="Search", exact=True).click()
    first = watched.page.get_by_role("article").first
    first.get_by_role("button", name="Show in its text").click()
    first.locator("mark").get_by_text("How to rotate a key").wait_for()
    first.get_by_role("button", name="Explain the score").click()
    score = first.get_by_role("region", name="Score").get_by_role("row").nth(1)
    assert (score.text_content() or "").startswith("by wordsbody1")
    watched.page.get_by_role("checkbox", name="rankings side by side").check()
    ranking = watched.page.get_by_role("region", name="by words: body")
    ranking.get_by_text("How to rotate a key").wait_for()
    assert ranking.get_by_role("listitem").count() == 2


def test_a_chat_lists_the_tools_and_keeps_verdicts(watched: Watched) -> None:
    """The model is played; the verdict goes to the runtime."""
    call = '\n[sql {"query": "SELECT 42 AS a"}]\n'
    chunks = [("", call), ("m", "It is "), ("m", "42, <b>really</b>.")]
    body = "".join(
        f"data: {json.dumps({'model': model, 'choices': [{'delta': {'content': text}}]})}\n\n"
        for model, text in chunks
    )
    watched.page.route("**/v1/models**", lambda route: route.fulfill(json={"data": [{"id": "m"}]}))
    watched.page.route(
        "**/v1/chat/completions",
        lambda route: route.fulfill(
            body=f"{body}data: [DONE]\n\n", content_type="text/event-stream"
        ),
    )
    watched.open("Chat and questions")
    watched.page.get_by_role("combobox", name="As").select_option("chat")
    watched.page.get_by_role("textbox", name="Question").fill("What is it?")
    watched.page.get_by_role("button", name="Ask").click()
    watched.page.get_by_text("It is 42, <b>really</b>.").wait_for()
    used = watched.page.locator(".tool-use")
    assert (used.text_content() or "").startswith("called sql SELECT 42 AS a")
    with watched.page.expect_response("**/v1/verdicts") as kept:
        watched.page.get_by_role("button", name="Good answer").click()
    assert kept.value.status == 204
    watched.page.get_by_text("Kept by the runtime.").wait_for()
    used.get_by_role("link", name="Open in SQL").click()
    watched.page.locator(".cm-content").get_by_text("SELECT 42").wait_for()


def test_the_cluster_page_has_charts_of_the_last_hour(watched: Watched) -> None:
    columns = {
        "at_ms": [1_750_000_000_000, 1_750_000_015_000], "statements": [30, 60],
        "memory_used_bytes": [1024, 2048], "memory_bytes": [4096, 4096],
    }  # fmt: skip
    found = {
        "every_s": 15, "schedulers": 1, "columns": columns, "engine_ends": {"memory": 2},
        "engine_refusals": {},
    }  # fmt: skip
    watched.open("Cluster")
    early = watched.page.get_by_text("The first charts come 45 seconds after the start.")
    early.or_(watched.page.get_by_role("img", name="Statements")).first.wait_for()
    ends = watched.page.get_by_role("region", name="Restarts of engine processes")
    # Statements of other tests may have ended some.
    none = watched.page.get_by_text("No engine process of this scheduler has ended")
    none.or_(ends).first.wait_for()
    watched.open("Home")
    watched.page.route("**/v1/cluster/recent", lambda route: route.fulfill(json=found))
    watched.page.reload()
    watched.open("Cluster")
    chart = watched.page.get_by_role("img", name="Statements now 4/s, at most 4/s", exact=True)
    assert chart.locator("path").get_attribute("d") == "M0.0,35.0L300.0,0.0"
    ends.get_by_text("memory").wait_for()


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

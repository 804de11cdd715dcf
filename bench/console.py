"""The console in Chromium: weights, times, a million rows, a large tree, pages that stay open."""

import contextlib
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import servers
from bench.report import Figure, Section
from bench.settings import Settings
from caraway_serving import console

_ROUNDS = 5
_ROWS, _TABLES, _STAGES = 1_000_000, 10_000, 100
_CONSOLES, _SPAN_MS, _IDLE_SHARE = 20, 30_000, 0.05
_IDLE_AFTER_MS = 95_000
"""A page that nobody has used for so long asks every 30 s, which is `_SPAN_MS`."""
_PLACES = ("", "sql", "data", "queries", "cluster", "search", "chat", "tools", "lists")
_SETTLE_MS, _ALONE_MS = 2_000, 10_000
_KB = 1_000
_MB = 1_000_000
_FIRST_KB, _ALL_KB, _INTERACTIVE_S, _ROWS_S, _MEMORY_MB = 120, 450, 1.0, 0.3, 250
_TREE_MS, _PLAN_MS = 200, 300
_SQL = (
    "SELECT value AS n, value * 1.5 AS f, concat('text ', value % 1000) AS t, value % 7 AS g "
    f"FROM generate_series(1, {_ROWS})"
)
_TEXT = (
    "Headless Chromium on the machine of the runtime, medians of {rounds}. The alternative of the "
    "first page is Swagger UI at `/docs` of the same runtime; that of the rows is `fetch` and "
    "`JSON.parse` of the same statement in the same tab; the goals of the tree and of the plan are "
    "times, so their alternative is the goal. Times of the tree and of the plan are from the "
    "answer to the next drawn frame, and those of the first rows from the first byte to the end of "
    "the frame that has them, by the clock of the page."
)
_NOTE_ROWS = """
new MutationObserver((_, observer) => {
  if (document.querySelector("[role=gridcell]") === null) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.rowsDrawnAt = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
_FIRST_ROWS_MS = """() => {
  const sent = performance.getEntriesByType("resource").filter((a) => a.name.endsWith("/v1/sql"));
  const largest = sent.reduce((a, b) => (a.decodedBodySize > b.decodedBodySize ? a : b));
  return window.rowsDrawnAt - largest.responseStart;
}"""
_HEAP = "() => { gc(); return performance.memory.usedJSHeapSize; }"


def measure(settings: Settings) -> Section:
    """Measure in a browser."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text("version: v1\nkind: Caraway\nname: shop\ndatasets: []\n")
        flags = ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        with servers.caraway(manifest) as (url, process):
            figures = [
                *_idle(browser, url, process.pid),
                *_weights(browser, url),
                _first_page(browser, url),
                *_million_rows(browser, url),
                _tree(browser, url),
                _plan(browser, url),
            ]
        browser.close()
    return Section("console", figures, _TEXT.format(rounds=_ROUNDS))


def _idle(browser: Any, url: str, pid: int) -> list[Figure]:
    """Measure what open pages cost the runtime, just opened and after a time without use.

    The clocks of the pages are put forward, so that nobody has to wait until they are idle.
    """
    pages = [browser.new_context().new_page() for _ in range(_CONSOLES)]
    rest = pages[0].wait_for_timeout
    alone = _cpu_share(pid, rest, _ALONE_MS)
    asked: list[str] = []
    for number, page in enumerate(pages):
        page.clock.install()
        page.goto(f"{url}/#/{_PLACES[number % len(_PLACES)]}", wait_until="commit")
    for page in pages:
        page.wait_for_selector("h1")
        page.on("request", lambda request: asked.append(request.url))
    rest(_SETTLE_MS)
    fresh = _cpu_share(pid, rest) - alone
    for page in pages:
        page.clock.fast_forward(_IDLE_AFTER_MS)
    rest(_SETTLE_MS)
    asked.clear()
    idle = _cpu_share(pid, rest) - alone
    statements = sum(each.endswith("/v1/sql") for each in asked) * 60_000 / _SPAN_MS
    for page in pages:
        page.context.close()
    return [
        Figure(f"{_CONSOLES} consoles just opened, of a core; the goal",
               f"{fresh:.1%}", f"{_IDLE_SHARE:.0%}", fresh / _IDLE_SHARE, f"≤ {_IDLE_SHARE:.0%}",
               fresh <= _IDLE_SHARE),
        Figure(f"{_CONSOLES} open consoles that nobody uses, of a core; just opened",
               f"{idle:.1%}", f"{fresh:.1%}", idle / fresh if fresh else 0, f"≤ {_IDLE_SHARE:.0%}",
               idle <= _IDLE_SHARE),
        Figure(f"statements that {_CONSOLES} idle consoles run, a minute", f"{statements:.0f}",
               f"{_CONSOLES * 4}", statements / (_CONSOLES * 4), f"≤ {_CONSOLES * 4}",
               statements <= _CONSOLES * 4),
    ]  # fmt: skip


def _cpu_share(pid: int, rest: Callable[[int], None], span_ms: int = _SPAN_MS) -> float:
    """Return the share of a core that a process and its descendants use, while pages go on."""
    family = _family(pid)
    before, began = sum(map(_cpu_s, family)), time.perf_counter()
    rest(span_ms)
    return (sum(map(_cpu_s, family)) - before) / (time.perf_counter() - began)


def _family(pid: int) -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _weights(browser: Any, url: str) -> list[Figure]:
    ours, swagger = _received(browser, f"{url}/"), _received(browser, f"{url}/docs")
    whole = sum(path.stat().st_size for path in console.FOLDER.rglob("*.gz"))
    return [
        Figure("the first page, compressed; Swagger UI", f"{ours / _KB:.0f} kB",
               f"{swagger / _KB:.0f} kB", ours / swagger, f"≤ {_FIRST_KB} kB",
               ours <= _FIRST_KB * _KB),
        Figure("all files of both consoles, compressed; Swagger UI", f"{whole / _KB:.0f} kB",
               f"{swagger / _KB:.0f} kB", whole / swagger, f"≤ {_ALL_KB} kB",
               whole <= _ALL_KB * _KB),
    ]  # fmt: skip


def _received(browser: Any, url: str) -> int:
    """Return the bytes that scripts, styles and the page itself take on the wire."""
    page = browser.new_page()
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(_size_of(request)))
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.close()
    return sum(sizes)


def _size_of(request: Any) -> int:
    if request.resource_type not in ("document", "script", "stylesheet"):
        return 0
    size: int = request.sizes()["responseBodySize"]
    return size


def _first_page(browser: Any, url: str) -> Figure:
    ours = _median_s(lambda: _open_s(browser, f"{url}/", "h1"))
    swagger = _median_s(lambda: _open_s(browser, f"{url}/docs", ".opblock"))
    return Figure(
        "until the first page can be used, new browser context; Swagger UI", f"{ours:.2f} s",
        f"{swagger:.2f} s", ours / swagger, f"≤ {_INTERACTIVE_S:g} s", ours <= _INTERACTIVE_S,
    )  # fmt: skip


def _open_s(browser: Any, url: str, selector: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    began = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(selector)
    took = time.perf_counter() - began
    context.close()
    return took


def _million_rows(browser: Any, url: str) -> list[Figure]:
    page = browser.new_page()
    page.add_init_script(_NOTE_ROWS)
    page.goto(f"{url}/#/sql")
    firsts, wholes = [], []
    for _ in range(_ROUNDS):
        _write(page, _SQL)
        began = time.perf_counter()
        page.keyboard.press("Control+Enter")
        page.locator(".outcome-line").get_by_text("done").wait_for()
        wholes.append(time.perf_counter() - began)
        firsts.append(page.evaluate(_FIRST_ROWS_MS) / 1000)
        heap = page.evaluate(_HEAP)
        page.reload()
        page.wait_for_selector(".cm-content")
    other_s, other_heap = _parsed(page)
    page.close()
    first, whole = statistics.median(firsts), statistics.median(wholes)
    return [
        Figure("from the first byte to the first rows of a million; all rows as JSON",
               f"{first:.2f} s", f"{other_s:.2f} s", first / other_s, f"≤ {_ROWS_S:g} s",
               first <= _ROWS_S),
        Figure("all rows of the million; as JSON", f"{whole:.2f} s", f"{other_s:.2f} s",
               whole / other_s, "≤ 1", whole <= other_s),
        Figure("memory of the tab with the million; as JSON", f"{heap / _MB:.0f} MB",
               f"{other_heap / _MB:.0f} MB", heap / other_heap, f"≤ {_MEMORY_MB} MB",
               heap <= _MEMORY_MB * _MB),
    ]  # fmt: skip


def _parsed(page: Any) -> tuple[float, int]:
    began = time.perf_counter()
    page.evaluate(_FETCH, _SQL)
    took = time.perf_counter() - began
    return took, page.evaluate(_HEAP)


def _tree(browser: Any, url: str) -> Figure:
    tables = [
        {"table_schema": "public", "table_name": f"table_{each:05}", "table_type": "BASE TABLE"}
        for each in range(_TABLES)
    ]

    def answer(route: Any) -> None:
        if "information_schema.tables" in (route.request.post_data or ""):
            route.fulfill(body=json.dumps(tables), content_type="application/json")
        else:
            route.continue_()

    return _drawn(
        browser, f"{url}/#/data", answer, ".tree li a",
        f"a tree of {_TABLES:,} tables", _TREE_MS,
    )  # fmt: skip


def _plan(browser: Any, url: str) -> Figure:
    plan = "\n".join(f"{'  ' * (each % 10)}Stage{each}Exec: part" for each in range(_STAGES))

    def answer(route: Any) -> None:
        if (route.request.post_data or "").startswith("EXPLAIN"):
            body = json.dumps([{"plan_type": "physical_plan", "plan": plan}])
            route.fulfill(body=body, content_type="application/json")
        else:
            route.continue_()

    def ask(page: Any) -> None:
        _write(page, "SELECT 1")
        page.get_by_role("button", name="Explain", exact=True).click()

    return _drawn(
        browser, f"{url}/#/sql", answer, ".plan-node", f"a plan of {_STAGES} stages", _PLAN_MS, ask
    )  # fmt: skip


_FETCH = """async sql => {
  const answer = await fetch('v1/sql', {method: 'POST', body: sql});
  window.kept = await answer.json();
}"""
_WATCH = """selector => {
  const parse = Response.prototype.json;
  Response.prototype.json = async function () {
    const found = await parse.call(this);
    window.answeredAt = performance.now();
    return found;
  };
  const look = () => {
    if (document.querySelector(selector)) window.drawnMs = performance.now() - window.answeredAt;
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def _drawn(
    browser: Any, url: str, answer: Callable[[Any], None], selector: str, name: str, goal_ms: int,
    ask: Callable[[Any], None] = lambda page: None,
) -> Figure:  # fmt: skip
    """Return how long after its answer something is drawn."""
    taken = []
    for _ in range(_ROUNDS):
        context = browser.new_context()
        page = context.new_page()
        page.route("**/v1/sql", answer)
        page.add_init_script(f"({_WATCH})({json.dumps(selector)})")
        page.goto(url)
        ask(page)
        page.wait_for_selector(selector)
        page.wait_for_function("window.drawnMs !== undefined")
        taken.append(page.evaluate("window.drawnMs"))
        context.close()
    ours = statistics.median(taken)
    return Figure(
        name, f"{ours:.0f} ms", f"{goal_ms} ms", ours / goal_ms, f"≤ {goal_ms} ms", ours <= goal_ms
    )


def _write(page: Any, sql: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(sql)


def _median_s(take: Callable[[], float]) -> float:
    return statistics.median(take() for _ in range(_ROUNDS))

import re
from pathlib import Path

from caraway_core.concurrency import tasks
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
MANIFEST = """
    datasets:
      - {from: 'file:people.csv', name: people}
      - {from: 'file:absent.csv', name: absent}
    views:
      - {name: v, sql: SELECT 1 AS x}
"""


async def test_page_counts_what_happened(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id\n1\n2\n")
    async with running(tmp_path, MANIFEST) as runtime:
        # An answer that is not whole at once is streamed, and would be compressed.
        plain = {"accept-encoding": "identity"}
        first = await runtime.sql("SELECT * FROM people", **plain)
        await runtime.sql("SELECT * FROM people", **plain)
        await runtime.sql("SELECT nope FROM people")
        await runtime.api.get("/v1/datasets")
        await runtime.api.get("/no/such/route")
        expected = {
            'query_executions_total{protocol="http"} 3.0',
            'query_failures_total{error="InvalidQueryError",protocol="http"} 1.0',
            'query_returned_rows_total{protocol="http"} 4.0',
            f'query_returned_bytes_total{{protocol="http"}} {2 * len(first.content)}.0',
            'query_duration_ms_count{protocol="http"} 3.0',
            'http_requests_total{method="POST",path="/v1/sql",status="200"} 2.0',
            'http_requests_total{method="POST",path="/v1/sql",status="400"} 1.0',
            'http_requests_total{method="GET",path="/v1/datasets",status="200"} 1.0',
            'http_requests_total{method="other",path="other",status="404"} 1.0',
            'dataset_load_state{dataset="people"} 1.0',
            'dataset_load_state{dataset="absent"} 3.0',
            'view_load_state{view="v"} 1.0',
            "results_cache_hits_total 1.0",
            "query_active_count 0.0",
        }

        async def is_whole() -> bool:
            page = (await runtime.metrics.get("/metrics")).text
            return expected <= set(page.splitlines())

        # A statement is counted when its last byte is sent, which the client may see first.
        await eventually(is_whole, "every count is on the page", 30)


async def test_page_counts_background_work_that_failed(tmp_path: Path) -> None:
    kind = "work that a test made fail"
    async with running(tmp_path, "") as runtime:
        for _ in range(2):
            tasks.note(KeyError("x"), kind)
        page = (await runtime.metrics.get("/metrics")).text
    assert f'background_failures_total{{work="{kind}"}} 2.0' in page.splitlines()


async def test_prefix_goes_before_each_name(tmp_path: Path) -> None:
    from caraway_gateway.metrics import rendering as metrics

    async with running(tmp_path, "") as runtime:
        page = metrics.render(metrics.registry(runtime.services, "acme_")).decode()
        names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
        assert all(name.startswith(("acme_", "process_")) for name in names)


async def test_reference_and_page_name_the_same_metrics(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id\n1\n")
    async with running(tmp_path, MANIFEST) as runtime:
        await runtime.sql("SELECT nope")
        page = (await runtime.metrics.get("/metrics")).text
    served = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    table = DOCS.read_text().split("## Metrics")[1].split("##")[0]
    told = set(re.findall(r"`([a-z_]+)`", "\n".join(re.findall(r"^\|.*?\|", table, re.M))))
    ours = {name for name in served if not name.startswith("process_")}
    assert {name.removesuffix("_total") for name in ours} == {
        name.removesuffix("_total").removesuffix("_info") if name != "caraway_build_info" else name
        for name in told
    }

"""Answers that start before rows change and end afterwards are not cached."""

from pathlib import Path

import pytest

from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS
from tests.gateway.api.accelerating import at_version
from tests.gateway.api.change_manifests import TAKING
from tests.kit.runtime import running

CACHED = "        runtime:\n          caching: {sql_results: {item_ttl: 1h}}\n"
PLAIN = TAKING.replace("            acceleration: {enabled: true}\n", "")


@pytest.mark.parametrize("text", [PLAIN, TAKING], ids=["plain", "accelerated"])
async def test_an_answer_that_a_write_overtakes_is_not_kept(tmp_path: Path, text: str) -> None:
    sql = "SELECT count(*) AS n FROM orders"
    async with running(tmp_path, text + CACHED) as runtime:
        if text is TAKING:
            await at_version(runtime, 1)
        request = QueryRequest(sql, ANONYMOUS, spans.start(None))
        answer = await runtime.services.queries.start(request)
        assert (await runtime.sql("INSERT INTO orders VALUES (1, 'a')")).status_code == 200
        assert [batch.to_pylist() async for batch in answer.rows] == [[{"n": 0}]]
        for wanted in ("MISS", "HIT"):
            found = await runtime.sql(sql)
            assert found.json() == [{"n": 1}]
            assert found.headers["results-cache-status"] == wanted

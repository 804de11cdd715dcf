"""`/v1/cluster/recent`: the last hour of a scheduler."""

from pathlib import Path

from caraway_gateway.metrics import sampling
from tests.kit.runtime import running

LOCKED = "runtime: {auth: {api-key: {enabled: true, keys: ['eve:ro']}}}\ndatasets: []"


async def test_samples_count_statements_and_failures(tmp_path: Path) -> None:
    async with running(tmp_path, LOCKED) as runtime:
        key = {"x-api-key": "eve"}
        sampling.take(runtime.services)
        assert (await runtime.sql("SELECT 1 AS a", **key)).json() == [{"a": 1}]
        await runtime.sql("SELECT nothing", **key)
        sampling.take(runtime.services)
        found = (await runtime.api.get("/v1/cluster/recent", headers=key)).json()
        columns = found["columns"]
        assert (columns["statements"], columns["failures"], columns["rows"]) == ([2], [1], [1])
        assert columns["busy_ms"][0] > 0 and columns["memory_used_bytes"][0] > 0
        assert (columns["running"], columns["queued"], columns["executors_ready"]) == (
            [0],
            [0],
            [1],
        )
        assert len({len(each) for each in columns.values()}) == 1
        assert (found["schedulers"], found["engine_ends"]) == (1, {})
        assert (await runtime.api.get("/v1/cluster/recent")).status_code == 401

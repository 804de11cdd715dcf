"""`/v1/sql/{query_id}/stages`: what a distributed statement does while it runs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caraway_core.concurrency.quotas import Quota
from tests.kit.cluster_runtime import Clustered
from tests.kit.deadlines import eventually
from tests.kit.held_tasks import SQL, holding
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ADA, BOB, EVE = ({"x-api-key": name} for name in ("ada", "bob", "eve"))
MANIFEST = """
    runtime:
      auth: {api-key: {enabled: true, keys: ["ada:rw", "bob:rw", "eve:ro"]}}
      scheduler: {state_location: results}
    datasets:
      - {from: 'file:facts.parquet', name: facts}
"""


async def listed(cluster: Clustered, name: str, key: dict[str, str]) -> Any:
    return await cluster.runtime.api.get(f"/v1/sql/{name}/stages", headers=key)


async def with_work(cluster: Clustered, name: str, key: dict[str, str]) -> Any:
    """Wait until a task of a statement is done, and return its stages."""

    async def found() -> Any:
        answer = await listed(cluster, name, key)
        stages = answer.json().get("stages", ())
        return answer.json() if any(each["tasks_done"] for each in stages) else None

    return await eventually(found, "a task is done")


@pytest.mark.parametrize("key", [ADA, EVE])
async def test_stages_are_seen_while_the_statement_runs(
    tmp_path: Path, key: dict[str, str]
) -> None:
    async with holding(tmp_path, MANIFEST) as (cluster, gate):
        run = asyncio.create_task(cluster.runtime.sql(SQL, traceparent=PARENT, **key))
        seen = await with_work(cluster, TRACE, key)
        first = seen["stages"][0]
        assert (first["state"], first["tables"], first["reads"]) == ("running", ["facts"], [])
        assert (first["tasks_done"], first["tasks_total"]) == (1, 2)
        (work,) = first["executors"]
        assert work["executor_id"] in ("e1", "e2") and work["tasks"] == 1
        assert first["ended_at_ms"] >= first["began_at_ms"] > 0
        # Later stages are planned with the measured size of this one.
        assert [each["name"] for each in seen["stages"]] == [first["name"]]
        # The id of the statement does as well as that of its trace; others see neither.
        assert (await listed(cluster, seen["query_id"], key)).status_code == 200
        assert (await listed(cluster, seen["query_id"], BOB)).status_code == 404
        assert (await listed(cluster, TRACE, BOB)).status_code == 404
        gate.set()
        assert (await run).json() == [{"g": g, "n": 100} for g in range(3)]
        assert (await listed(cluster, seen["query_id"], key)).status_code == 404


async def test_events_follow_a_statement_to_its_end(tmp_path: Path) -> None:
    async with holding(tmp_path, MANIFEST) as (cluster, gate):
        run = asyncio.create_task(cluster.runtime.sql(SQL, traceparent=PARENT, **ADA))
        await with_work(cluster, TRACE, ADA)
        headers = {**ADA, "accept": "text/event-stream"}
        following = asyncio.create_task(
            cluster.runtime.api.get(f"/v1/sql/{TRACE}/stages", headers=headers)
        )
        streams = cluster.runtime.services.stage_streams
        await eventually(lambda: is_open(streams), "the stream is open")
        gate.set()
        await run
        answer = await following
        assert answer.headers["content-type"].startswith("text/event-stream")
        *events, end = answer.text.strip().split("\n\n")
        assert end == "event: end\ndata: {}"
        assert all(each.startswith("event: stages\ndata: {") for each in events)
        assert json.loads(events[0].partition("data: ")[2])["stages"][0]["tasks_done"] == 1
        assert len(streams) == 0


async def test_a_key_follows_only_so_many_statements(tmp_path: Path) -> None:
    async with holding(tmp_path, MANIFEST) as (cluster, gate):
        run = asyncio.create_task(cluster.runtime.sql(SQL, traceparent=PARENT, **ADA))
        await with_work(cluster, TRACE, ADA)
        streams = cluster.runtime.services.stage_streams
        most = streams.limits.most_each
        assert most is not None
        for number in range(most):
            streams.add((await own_id(cluster, ADA)), number)
        headers = {**ADA, "accept": "text/event-stream"}
        refused = await cluster.runtime.api.get(f"/v1/sql/{TRACE}/stages", headers=headers)
        assert refused.status_code == 429 and "retry-after" in refused.headers
        assert (await listed(cluster, TRACE, ADA)).status_code == 200
        gate.set()
        await run


async def is_open(streams: Quota[object]) -> bool:
    return len(streams) == 1


async def own_id(cluster: Clustered, key: dict[str, str]) -> str:
    keyring = cluster.runtime.services.keyring
    assert keyring is not None
    found = keyring.find(key["x-api-key"])
    assert found is not None
    return found.id


async def test_jobs_have_stages_too(tmp_path: Path) -> None:
    async with holding(tmp_path, MANIFEST) as (cluster, gate):
        submitted = await cluster.runtime.api.post("/v1/queries", json={"sql": SQL}, headers=ADA)
        job = submitted.json()["query_id"]
        seen = await with_work(cluster, job, ADA)
        assert seen["query_id"] == job and seen["stages"][0]["tables"] == ["facts"]
        assert (await listed(cluster, job, EVE)).status_code == 404
        gate.set()
        status = f"/v1/queries/{job}/status?wait=30"
        ended = await cluster.runtime.api.get(status, headers=ADA)
        assert ended.json()["status"] == "SUCCEEDED"
        assert (await listed(cluster, job, ADA)).status_code == 404


@pytest.fixture(scope="module")
def shared(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("stages")
    with entered(loop_of_module, lambda: running(folder, "datasets: []")) as found:
        yield found


@pytest.mark.parametrize(
    "name", ["x", "active", "%00", "a" * 2_000, "%252F..", "0" * 32, "%27%20OR%201=1", "☃"]
)
async def test_what_is_no_id_of_the_caller_is_not_found(shared: Running, name: str) -> None:
    answer = await shared.api.get(f"/v1/sql/{name}/stages")
    assert answer.status_code == 404
    assert len(answer.text) < 300
    # A follower receives the end: the statement may have ended since its id was read.
    headers = {"accept": "text/event-stream"}
    followed = await shared.api.get(f"/v1/sql/{name}/stages", headers=headers)
    assert (followed.status_code, followed.text) == (200, "event: end\ndata: {}\n\n")

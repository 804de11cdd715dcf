"""Requests that change something, sent to one of two schedulers: the other one follows."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.errors import StateAwayError
from tests.kit.deadlines import eventually
from tests.kit.scheduler_pairs import Scheduler, pair

POLL_S = 0.02
PATH = "/v1/datasets/orders/acceleration"
ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"


def write(folder: Path, rows: int) -> None:
    pq.write_table(pa.table({"id": list(range(rows))}), folder / "orders.parquet")


@asynccontextmanager
async def refreshed(folder: Path) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    """Serve a dataset of a file, which both schedulers have loaded."""
    write(folder, 3)
    manifest = f"""\
runtime:
  caching: {{sql_results: {{enabled: false}}}}
datasets:
  - from: file:{folder}/orders.parquet
    name: orders
    acceleration: {{enabled: true, refresh_on_startup: auto}}
"""
    async with pair(folder, manifest, POLL_S) as (one, two):
        for at in (one, two):
            await counts(at, 3)
        yield one, two


async def counts(at: Scheduler, expected: int) -> None:
    """Wait until a scheduler reads `expected` rows."""

    async def look() -> bool:
        answer = await at.running.sql("SELECT count(*) AS n FROM orders")
        return answer.status_code == 200 and bool(answer.json() == [{"n": expected}])

    await eventually(look, f"{expected} rows are read")


async def standing(at: Scheduler) -> Mapping[str, Any]:
    told: Mapping[str, Any] = (await at.running.api.get(PATH)).json()
    return told


async def refresh(at: Scheduler, **body: object) -> int:
    return int((await at.running.api.post(f"{PATH}/refresh", json=body)).status_code)


async def test_refresh_on_one_scheduler_is_read_on_the_other(tmp_path: Path) -> None:
    async with refreshed(tmp_path) as (one, two):
        for rows, (here, there) in ((5, (one, two)), (7, (two, one))):
            write(tmp_path, rows)
            assert await refresh(here) == 201
            await counts(there, rows)
            await counts(here, rows)

        async def same() -> set[int]:
            found = {int((await standing(at))["version"]["number"]) for at in (one, two)}
            return found if len(found) == 1 else set()

        # Both read the rows before each of them has seen the version that both made.
        numbers = await eventually(same, "both have one version")
        for body in ({"refresh_mode": "sideways"}, {"refresh_sql": "DROP TABLE x"}):
            assert await refresh(one, **body) == 400
        assert {(await standing(at))["version"]["number"] for at in (one, two)} == numbers


async def test_refreshes_on_both_at_once_end_in_one_version(tmp_path: Path) -> None:
    async with refreshed(tmp_path) as (one, two):
        write(tmp_path, 9)
        assert set(await asyncio.gather(refresh(one), refresh(two), refresh(one))) == {201}

        async def agrees() -> bool:
            told = [await standing(at) for at in (one, two)]
            is_quiet = all("refresh" not in each for each in told)
            return is_quiet and told[0]["version"]["number"] == told[1]["version"]["number"]

        for at in (one, two):
            await counts(at, 9)
        await eventually(agrees, "both read one version")


async def test_statement_that_is_set_on_one_counts_for_refreshes_of_the_other(
    tmp_path: Path,
) -> None:
    async with refreshed(tmp_path) as (one, two):
        sql = "SELECT * FROM orders WHERE id < 2"
        one.store.away = StateAwayError("the state store is away")
        refused = await one.running.api.patch(PATH, json={"refresh_sql": sql})
        assert refused.status_code == 503, "what could not be written down is not promised"
        one.store.away = None
        answer = await one.running.api.patch(PATH, json={"refresh_sql": sql})
        assert answer.status_code == 200, answer.text
        assert await refresh(two) == 201
        for at in (one, two):
            await counts(at, 2)


@asynccontextmanager
async def jobs(folder: Path) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    manifest = "runtime:\n  auth: {api-key: {keys: ['ada:rw', 'bob:rw']}}\n"
    async with pair(folder, manifest, POLL_S) as both:
        yield both


ADA, BOB = {"x-api-key": "ada"}, {"x-api-key": "bob"}


async def submitted(at: Scheduler, sql: str, **headers: str) -> str:
    answer = await at.running.api.post("/v1/queries", json={"sql": sql}, headers={**ADA, **headers})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["query_id"])


async def becomes(at: Scheduler, job: str, status: str) -> None:
    async def look() -> bool:
        answer = await at.running.api.get(f"/v1/queries/{job}/status", headers=ADA)
        return answer.status_code == 200 and answer.json()["status"] == status

    await eventually(look, f"the job is {status}")


async def test_job_of_one_scheduler_is_cancelled_by_the_other(tmp_path: Path) -> None:
    async with jobs(tmp_path) as (one, two):
        job = await submitted(one, ENDLESS)
        await becomes(two, job, "RUNNING")
        answer = await two.running.api.post(f"/v1/queries/{job}/cancel", headers=ADA)
        assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
        await becomes(one, job, "CANCELLED")
        async with asyncio.timeout(10):
            await one.running.services.queries.active.wait_idle()
        again = await one.running.api.post(f"/v1/queries/{job}/cancel", headers=ADA)
        assert again.json()["status"] == "CANCELLED"


async def test_answer_of_one_scheduler_is_read_from_the_other(tmp_path: Path) -> None:
    async with jobs(tmp_path) as (one, two):
        job = await submitted(one, "SELECT 7 AS n")
        await becomes(two, job, "SUCCEEDED")
        answer = await two.running.api.get(
            f"/v1/queries/{job}/results", headers={**ADA, "accept": "application/x-ndjson"}
        )
        assert answer.status_code == 200 and answer.content == b'{"n":7}\n'


async def test_job_of_another_key_is_not_found_on_any_scheduler(tmp_path: Path) -> None:
    async with jobs(tmp_path) as (one, two):
        job = await submitted(one, ENDLESS)
        for at in (one, two):
            for path in ("status", "results", "cancel"):
                send = at.running.api.post if path == "cancel" else at.running.api.get
                answer = await send(f"/v1/queries/{job}/{path}", headers=BOB)
                assert answer.status_code == 404
        await two.running.api.post(f"/v1/queries/{job}/cancel", headers=ADA)


async def test_one_key_of_a_request_makes_one_job_whoever_takes_it(tmp_path: Path) -> None:
    async with jobs(tmp_path) as (one, two):
        key = {"idempotency-key": "k"}
        made = await asyncio.gather(
            *(submitted(at, "SELECT 1", **key) for at in (one, two, one, two))
        )
        assert len(set(made)) == 1
        answer = await two.running.api.post(
            "/v1/queries", json={"sql": "SELECT 2"}, headers={**ADA, **key}
        )
        assert answer.status_code == 422


async def test_statement_is_cancelled_where_it_runs_only(tmp_path: Path) -> None:
    async with jobs(tmp_path) as (one, two):
        asking = asyncio.ensure_future(one.running.sql(ENDLESS, **ADA))

        async def active(at: Scheduler) -> list[Any]:
            answer = await at.running.api.get("/v1/sql/active", headers=ADA)
            return list(answer.json()["queries"])

        (query,) = await eventually(lambda: active(one), "the statement runs")
        path = f"/v1/sql/{query['query_id']}/cancel"
        assert await active(two) == []
        assert (await two.running.api.post(path, headers=ADA)).status_code == 404
        assert (await one.running.api.post(path, headers=BOB)).status_code == 404
        assert (await one.running.api.post(path, headers=ADA)).status_code == 200
        assert (await asking).status_code == 499

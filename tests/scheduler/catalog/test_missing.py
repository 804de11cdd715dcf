"""A table that is still loading gives a retryable error; an unknown one does not."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.deadlines import eventually
from tests.kit.runtime import running
from tests.scheduler.catalog.missing_sources import (
    KEPT,
    MANIFEST,
    WAIT_S,
    held,
    loaded,
    not_waiting,
)


async def test_a_dataset_that_loads_is_503_and_an_unknown_table_400(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.csv").write_text("a\n1\n")
    with held(monkeypatch) as may_go:
        async with asyncio.timeout(WAIT_S), running(tmp_path, MANIFEST, before=not_waiting) as run:
            for table in ("slow", "slower"):
                answer = await run.sql(f"SELECT a FROM {table}")
                assert answer.status_code == 503, answer.text
                assert int(answer.headers["retry-after"]) > 0
                assert "still loading" in answer.text
            assert (await run.sql("SELECT a FROM nowhere")).status_code == 400
            body = {"sql": "SELECT a FROM slow"}
            job = (await run.api.post("/v1/queries", json=body)).json()
            may_go.set()
            await loaded(run, "SELECT a FROM slower")

            async def ended() -> bool:
                got = await run.api.get(f"/v1/queries/{job['query_id']}")
                return bool(got.json()["status"] == "SUCCEEDED")

            await eventually(ended, "the job waited for its dataset")


async def test_a_dataset_in_error_says_why(tmp_path: Path) -> None:
    (tmp_path / "slow.csv").write_text("a\n1\n")
    views = ("over_gone", "SELECT a FROM gone"), ("wrong", "SELECT x FROM slow")
    more = "".join(f"  - {{name: {name}, sql: {sql}}}\n" for name, sql in views)
    async with running(tmp_path, MANIFEST + more) as runtime:
        for table in ("gone", "over_gone"):
            answer = await runtime.sql(f"SELECT a FROM {table}")
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["retry-after"]) > 0
            assert f"'{table}' is in the error state" in answer.text
        (tmp_path / "gone.csv").write_text("a\n2\n")
        await loaded(runtime, "SELECT a FROM over_gone")
        assert (await runtime.sql("SELECT x FROM wrong")).status_code == 400


async def test_a_stored_version_answers_before_its_source_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.csv").write_text("a\n1\n")
    async with running(tmp_path, KEPT) as runtime:
        await loaded(runtime, "SELECT a FROM slow")
    with held(monkeypatch):
        async with asyncio.timeout(WAIT_S), running(tmp_path, KEPT, before=not_waiting) as again:
            await loaded(again, "SELECT a FROM slow")

"""Searches that are known to be short are answered at once, in whichever thread asks."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.errors import NotDistributableError
from caraway_core.ids import CatalogVersion, TableName, new_query_id
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.protocols.fleet import AnswerPage
from caraway_core.statements import Statement
from caraway_executor.indexes import running
from caraway_executor.tasks.worker import Worker
from tests.kit.stored import stored
from tests.kit.workers import catalog, worker

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "body": ["red fox", "blue", "green fox", "red", "", "fox fox"],
        "v": pa.array([[float(n), 1.0] for n in range(6)], pa.list_(pa.float32(), 2)),
    }
)
WORDS = IndexOrder(TableName("t"), WordOrder(("body",), "fox", "english", (1.0,)), ("id",), limit=3)
VECTOR = np.array([1.0, 0.0], np.float32).tobytes()
VECTORS = IndexOrder(TableName("t"), VectorOrder("v", VECTOR, "cosine", 0.98), ("id",), limit=3)
ORDERS = pytest.mark.parametrize("order", [WORDS, VECTORS], ids=["words", "vectors"])


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sure that a busy machine does not change which searches are short."""
    monkeypatch.setattr(running, "_SHORT_S", 60.0)


@asynccontextmanager
async def searching(folder: Path) -> AsyncIterator[Worker]:
    made = worker({"t": await stored(folder, ROWS)})
    try:
        yield made
    finally:
        await made.aclose()


def statement(order: IndexOrder, version: int | None = None) -> Statement:
    wanted = None if version is None else CatalogVersion(version)
    return Statement("SELECT id FROM t", {}, index=order, catalog_version=wanted)


def ids(page: AnswerPage | None) -> list[int]:
    assert page is not None and page.is_last
    return [each for batch in page.batches for each in batch.column("id").to_pylist()]


async def searched(at: Worker, order: IndexOrder) -> AnswerPage:
    return await at.open(new_query_id(), statement(order), "here")


@ORDERS
async def test_a_search_is_answered_at_once_after_one_that_was_short(
    tmp_path: Path, order: IndexOrder
) -> None:
    async with searching(tmp_path) as at:
        assert at.open_at_once(statement(order), "here") is None
        first = await searched(at, order)
        again = at.open_at_once(statement(order), "here")
        assert again is not None
        assert replace(again, cursor="") == replace(first, cursor="")
        assert len(ids(again)) == 3
        assert ids(at.open_at_once(statement(order, version=1), "here")) == ids(first)


async def test_other_threads_may_ask_and_every_answer_counts(tmp_path: Path) -> None:
    async with searching(tmp_path) as at:
        expected = ids(await searched(at, WORDS))
        before = (await at.describe()).finished_tasks
        found: list[list[int]] = []

        def ask() -> None:
            for _ in range(50):
                found.append(ids(at.open_at_once(statement(WORDS), "here")))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [expected] * 200
        assert (await at.describe()).finished_tasks == before + 200


async def test_what_may_take_long_is_not_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with searching(tmp_path) as at:
        await searched(at, WORDS)
        assert at.open_at_once(statement(replace(WORDS, where="(id > 2)")), "here") is None
        assert at.open_at_once(statement(replace(WORDS, is_explained=True)), "here") is None
        assert at.open_at_once(statement(replace(WORDS, limit=1000)), "here") is None
        assert at.open_at_once(Statement("SELECT 1", {}), "here") is None
        many = WordOrder(("body",), "fox~ " * 100, "english", (1.0,))
        assert at.open_at_once(statement(replace(WORDS, by=many)), "here") is None
        monkeypatch.setattr(running, "_SHORT_S", -1.0)
        assert at.open_at_once(statement(WORDS), "here") is None


async def test_no_index_is_built_at_once(tmp_path: Path) -> None:
    async with searching(tmp_path) as at:
        await searched(at, WORDS)
        other = await stored(tmp_path, pa.concat_tables([ROWS, ROWS]), key="other")
        assert at.install(catalog({"t": other}, version=2)) == {}
        assert at.open_at_once(statement(WORDS, version=2), "here") is None
        assert len(ids(await searched(at, WORDS))) == 3
        assert at.open_at_once(statement(WORDS, version=2), "here") is not None


async def test_what_is_wrong_is_told_to_those_who_wait(tmp_path: Path) -> None:
    async with searching(tmp_path) as at:
        await searched(at, WORDS)
        wrong = replace(WORDS, is_required=True, columns=("nothing",))
        assert at.open_at_once(statement(wrong), "here") is None
        assert at.open_at_once(statement(WORDS, version=9), "here") is None
        assert at.open_at_once(statement(WORDS), "elsewhere") is None
        unknown = replace(WORDS, table=TableName("u"), is_required=True)
        assert at.open_at_once(statement(unknown), "here") is None
        with pytest.raises(NotDistributableError):
            await searched(at, unknown)


async def test_a_draining_worker_answers_nothing(tmp_path: Path) -> None:
    async with searching(tmp_path) as at:
        await searched(at, WORDS)
        at.drain()
        assert at.open_at_once(statement(WORDS), "here") is None

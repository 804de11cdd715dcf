"""The answer to a write of a table of files comes once its rows can be read."""

import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, ExecutionError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import FilesTable, MemoryTable, RemoteTable, TableSpec
from caraway_scheduler.dispatch.wrappers.renewing import RenewingDispatch
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema([("count", pa.uint64())])
WRITER = RemoteTable(SCHEMA, "delta", ("t",), (), {})
COUNT = pa.record_batch({"count": pa.array([2], pa.uint64())})


class Loaded:
    """Datasets that are looked at again."""

    def __init__(self, spec: TableSpec | None, failure: DatasetError | None = None) -> None:
        self._spec = spec
        self.renewed: list[str] = []
        self._failure = failure

    def table_at_source(self, name: TableName) -> TableSpec | None:
        return self._spec if name == "t" else None

    async def renew(self, name: TableName) -> None:
        self.renewed.append(name)
        if self._failure is not None:
            raise self._failure


class Answer(StreamDouble):
    """The answer to a write, or the error of one."""

    reads_only_catalog = False

    def __init__(self, written: str | None, failure: Exception | None = None) -> None:
        self.schema = SCHEMA
        self.written = TableName(written) if written else None
        self._failure = failure

    async def _rows(self) -> AsyncIterator[pa.RecordBatch]:
        if self._failure is not None:
            raise self._failure
        yield COUNT

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self._rows()

    async def aclose(self) -> None:
        pass


class Answering:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def execute(self, _query_id: QueryId, _statement: Statement) -> Answer:
        return self._answer


async def execute(loaded: Loaded, answer: Answer) -> Any:
    dispatch = RenewingDispatch(cast(Dispatch, Answering(answer)), loaded)
    return await dispatch.execute(QueryId("q"), Statement("INSERT", {}))


async def test_the_count_comes_after_the_table_was_looked_at_again() -> None:
    loaded = Loaded(FilesTable(SCHEMA, (), 0, WRITER))
    stream = aiter(await execute(loaded, Answer("t")))
    assert loaded.renewed == []
    assert await anext(stream) == COUNT
    assert loaded.renewed == ["t"]
    assert await anext(stream, None) is None
    assert loaded.renewed == ["t"]


@pytest.mark.parametrize("spec", [
    None, WRITER, FilesTable(SCHEMA, ()), MemoryTable(SCHEMA, SCHEMA.empty_table()),
])  # fmt: skip
async def test_other_tables_are_read_as_they_are(spec: TableSpec | None) -> None:
    loaded, answer = Loaded(spec), Answer("t")
    assert await execute(loaded, answer) is answer


@pytest.mark.parametrize("written", [None, "u"])
async def test_other_statements_pass(written: str | None) -> None:
    loaded, answer = Loaded(FilesTable(SCHEMA, (), 0, WRITER)), Answer(written)
    assert await execute(loaded, answer) is answer


async def test_a_write_that_fails_renews_nothing() -> None:
    loaded = Loaded(FilesTable(SCHEMA, (), 0, WRITER))
    stream = await execute(loaded, Answer("t", ExecutionError("no row was inserted")))
    with pytest.raises(ExecutionError):
        await anext(aiter(stream))
    assert loaded.renewed == []


async def test_rows_that_are_committed_count_although_the_table_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loaded = Loaded(FilesTable(SCHEMA, (), 0, WRITER), DatasetError("unavailable", "away"))
    with caplog.at_level(logging.WARNING):
        assert await anext(aiter(await execute(loaded, Answer("t")))) == COUNT
    assert "not read again after a write" in caplog.text

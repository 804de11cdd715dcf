"""A dataset without columns gets those of its first events."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_acceleration.changes.ingesting import QueueFullError, StreamStoppedError
from caraway_acceleration.changes.learned_columns import LearnedColumns
from caraway_core import changes
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName

T = TableName("t")
ROWS = pa.schema([("id", pa.int64())])
OTHER = pa.schema([("id", pa.string())])


class Current:
    """The version of a dataset: none until a test stores one."""

    name = T

    def __init__(self, *, is_followed: bool = True) -> None:
        self.ours: Any = None
        self.held: Any = None
        self.subject = SimpleNamespace(is_followed=is_followed)

    def store(self, schema: pa.Schema) -> None:
        self.ours = self.held = SimpleNamespace(version=SimpleNamespace(schema=schema))


def learned(current: Current) -> LearnedColumns:
    given: Any = current
    return LearnedColumns(given)


async def test_before_the_first_event_there_are_no_columns() -> None:
    columns = learned(Current())
    with pytest.raises(DatasetError, match="dataset 't': no event has arrived yet"):
        columns.source_schema(T)
    assert columns.known() is None and not columns.is_awaited


async def test_the_first_events_end_the_wait_and_their_columns_are_stored() -> None:
    current = Current()
    columns = learned(current)
    waiting = asyncio.ensure_future(columns.wait())
    await asyncio.sleep(0)
    assert columns.is_awaited and not waiting.done()
    taking = asyncio.ensure_future(columns.take_columns(changes.log_schema(ROWS), 30))
    await waiting
    assert columns.source_schema(T) == ROWS
    current.store(ROWS)
    columns.begun()
    await taking
    assert not columns.is_awaited


async def test_a_version_of_another_scheduler_ends_the_wait_too() -> None:
    current = Current()
    columns = learned(current)
    waiting = asyncio.ensure_future(columns.wait())
    await asyncio.sleep(0)
    columns.found()
    await asyncio.sleep(0)
    assert not waiting.done(), "there is no version yet"
    current.store(ROWS)
    columns.found()
    await waiting
    assert not columns.is_awaited and columns.source_schema(T) == ROWS


async def test_events_with_other_columns_than_those_stored_are_to_be_sent_again() -> None:
    current = Current()
    columns = learned(current)
    current.store(OTHER)
    columns.begun()
    with pytest.raises(StreamStoppedError, match="got its columns from other events"):
        await columns.take_columns(changes.log_schema(ROWS), 30)


async def test_events_whose_columns_are_not_stored_in_time_are_refused() -> None:
    with pytest.raises(QueueFullError, match="were not stored within 0 s, and no change"):
        await learned(Current()).take_columns(changes.log_schema(ROWS), 0)


@pytest.mark.parametrize("has_version", [True, False])
async def test_who_has_a_version_or_rows_of_before_does_not_wait(has_version: bool) -> None:
    current = Current(is_followed=False)
    current.held = object()
    if has_version:
        current.store(ROWS)
    columns = learned(current)
    await columns.wait()
    assert not columns.is_awaited

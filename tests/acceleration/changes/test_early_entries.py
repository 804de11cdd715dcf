"""Entries that are stored while an upload arrives."""

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_acceleration.changes import changing, early_entries
from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.changes.early_entries import EarlyEntries, EarlyRows
from caraway_acceleration.changes.ingesting import BaseWithLog
from caraway_core.changes import OP, Op
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import ExecutionError
from caraway_core.statements import GivenRows
from caraway_core.tables import Twice
from tests.acceleration.changes.feeding import NAME, SCHEMA, Site, Taking, changes, site
from tests.kit.deadlines import eventually
from tests.kit.turns import turn


class Upload:
    """An upload into a dataset."""

    def __init__(self, one: Taking, *, twice: Twice = "last", replaces: bool = False) -> None:
        self.owned = Tasks()
        self.dataset = Changeable(NAME, SCHEMA, ("id",), twice, BaseWithLog("", ()))
        self.entries = EarlyEntries(self.dataset, one.results, self.owned, replaces=replaces)

    def add(self, *ids: int) -> None:
        self.entries.add(pa.table({"id": list(ids), "v": ["x"] * len(ids)}, SCHEMA))


async def reached(look: Callable[[], bool], what: str) -> None:
    async def looked() -> bool:
        return look()

    await eventually(looked, what)


async def keys(place: Site) -> set[str]:
    return set(await place.results.keys())


async def test_entries_are_stored_before_they_count_and_are_not_written_again(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        await one.apply(changes((1, "a")))
        before = await keys(place)
        upload = Upload(one)
        upload.add(2, 3)
        upload.add(4)
        made = await upload.entries.finished()
        assert [entry.chunk.row_count for entry in made.entries] == [2, 1]
        assert made.rows["id"].to_pylist() == [2, 3, 4] and made.received == 3
        assert len(one.log) == 1 and await one.ids() == [1]
        stored = await keys(place)
        assert await one.apply(made) == 3
        assert await keys(place) == stored and len(stored - before) == 1
        assert await one.ids() == [1, 2, 3, 4] and len(one.log) == 3
        assert [each.chunk for each in one.log[1:]] == [each.chunk for each in made.entries]


async def test_other_changes_come_before_or_after_an_upload_as_they_were_sent(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as place, place.taking() as one, place.taking("two") as two:
        upload = Upload(one)
        upload.add(7)
        made = await upload.entries.finished()
        # Another scheduler moves the log meanwhile, so the first attempt fails.
        await two.apply(changes((1, "a")))
        one.readers.may_load.clear()
        first = asyncio.ensure_future(one.apply(changes((2, "b"))))
        await asyncio.sleep(0)
        others = [one.apply(changes((3, "c"))), one.apply(made), one.apply(changes((4, "d")))]
        asked = [asyncio.ensure_future(each) for each in others]
        await asyncio.sleep(0)
        one.readers.may_load.set()
        await asyncio.gather(first, *asked)
        assert await one.ids() == [1, 2, 3, 7, 4]


async def test_what_a_dead_process_stored_early_is_no_part_of_the_dataset(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        async with place.taking() as one:
            await one.apply(changes((1, "a")))
            upload = Upload(one)
            upload.add(2)
            await upload.entries.finished()
        async with place.taking("two") as two:
            assert await two.ids() == [1]
            await two.apply(changes((3, "c")))
            assert await two.ids() == [1, 3]


async def test_a_broken_upload_leaves_no_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_entries, "_WRITES", 1)
    async with site(tmp_path) as place, place.taking() as one:
        before = await keys(place)
        upload = Upload(one)
        for number in range(5):
            upload.add(number)
        while not await keys(place) > before:
            await turn()
        upload.entries.discard()
        await reached(lambda: not len(upload.owned), "it is removed")
        assert await keys(place) == before


async def test_an_entry_that_is_being_written_is_removed_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        before = await keys(place)
        write, may_go, begun = place.results.write_chunk, asyncio.Event(), asyncio.Event()

        async def slow(*arguments: Any) -> Any:
            begun.set()
            await may_go.wait()
            return await write(*arguments)

        monkeypatch.setattr(place.results, "write_chunk", slow)
        upload = Upload(one)
        upload.add(1)
        await begun.wait()
        waiting = asyncio.ensure_future(upload.entries.finished())
        await asyncio.sleep(0)
        waiting.cancel()
        upload.entries.discard()
        await asyncio.sleep(0)
        may_go.set()
        await reached(lambda: not len(upload.owned), "it is removed")
        assert await keys(place) == before and waiting.cancelled()


def test_other_processes_receive_the_rows_alone() -> None:
    rows = pa.table({"id": [1]})
    given = replace(EarlyRows.from_table(rows, NAME), changes=changes((1, "a")))
    received = pickle.loads(pickle.dumps(given))
    assert type(received) is GivenRows and received.rows.equals(rows)
    assert (received.name, received.target, received.replaces) == (given.name, NAME, False)


async def test_entries_that_may_be_removed_soon_are_written_again(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        upload = Upload(one)
        upload.add(1, 2)
        made = await upload.entries.finished()
        one.current.clock = lambda: datetime.now(UTC) + timedelta(hours=2)
        await one.apply(made)
        assert await one.ids() == [1, 2]
        assert one.log[0].chunk.key != made.entries[0].chunk.key


async def test_an_upload_that_cannot_be_stored_fails_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        upload = Upload(one)
        upload.add(1)
        monkeypatch.setattr(place.results, "write_chunk", _full)
        upload.add(2)
        with pytest.raises(ExecutionError, match="the disk is full"):
            await upload.entries.finished()
        upload.entries.discard()
        await reached(lambda: not len(upload.owned), "it is removed")
        assert one.log == ()


async def _full(*_: object) -> None:
    raise ExecutionError("the disk is full")


async def test_rows_that_replace_all_others_follow_a_truncate(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        upload = Upload(one, replaces=True)
        upload.add(1)
        upload.add(2)
        made = await upload.entries.finished()
        assert made.rows[OP].to_pylist() == [Op.TRUNCATE, Op.UPSERT, Op.UPSERT]
        assert made.received == 2


def test_changes_fit_only_a_dataset_with_the_same_columns_and_operation() -> None:
    def dataset(schema: pa.Schema = SCHEMA, key: str = "id", twice: Twice = "last") -> Changeable:
        return Changeable(NAME, schema, (key,) if key else (), twice, BaseWithLog("", ()))

    made = changes((1, "a"), op=Op.UPSERT)
    wide = SCHEMA.append(pa.field("w", pa.int64()))
    is_fit = {
        "same": changing.fits(made, dataset()),
        "columns": changing.fits(made, dataset(wide)),
        "no key": changing.fits(made, dataset(key="")),
        "first": changing.fits(made, dataset(twice="first")),
        "refuse": changing.fits(made, dataset(twice="refuse")),
        "none": changing.fits(None, dataset()),
    }
    assert [name for name, fits in is_fit.items() if fits] == ["same"]

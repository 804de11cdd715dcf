"""Compactions of the logs of datasets, while changes come.

The state store and the result store are real. A fake replaces the readers.
"""

import asyncio
from pathlib import Path

import pytest

from caraway_acceleration.upkeep import compaction, logs
from caraway_core.changes import OP, Op
from tests.acceleration.changes.feeding import changes, site
from tests.kit.deadlines import eventually
from tests.kit.turns import turn


async def test_a_log_is_compacted_while_changes_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 5)
    async with site(tmp_path) as place, place.taking() as one:
        working = asyncio.create_task(one.compactor.run())
        try:
            for number in range(7):
                await one.apply(changes((number, "x"), offset=number))

            async def look() -> bool:
                return one.compactor.compactions > 0

            await eventually(look, "the log is part of the base")
            await one.apply(changes((100, "y"), offset=100))
        finally:
            working.cancel()
            await asyncio.wait((working,))
        version = one.current.ours
        assert version is not None and version.version.base_rows == 1
        [seen] = one.readers.made
        known = sum(each.chunk.row_count for log in seen.values() for each in log)
        assert known >= 6
        rows = await logs.read(place.results, one.log)
        ops, ids = rows[OP].to_pylist(), rows["id"].to_pylist()
        assert ids[:known] == list(range(known)) and set(ops[:known]) == {Op.SEEN}
        assert ids[known:] == [*range(known, 7), 100] and set(ops[known:]) == {Op.UPSERT}
        assert one.shown[-1].key == version.version.key
        assert one.readers.followed[version.version.key] == one.log


_EARLY = {"LEAST_LOGGED": 5, "CALM_ROWS": 0, "_CALM_S": 60.0, "_MOST_CALM_S": 600.0}


async def test_compaction_waits_for_the_end_of_uploads_that_follow_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**_EARLY, "UPLOAD_ROWS": 1}.items():
        monkeypatch.setattr(compaction, name, value)
    async with site(tmp_path) as place, place.taking() as one:
        working = asyncio.create_task(one.compactor.run())
        try:
            for number in range(20):
                await one.apply(changes((number, "x")))
                await turn()
            assert one.compactor.compactions == 0 and len(one.log) == 20
            monkeypatch.setattr(compaction, "_CALM_S", 0.0)
            await one.apply(changes((20, "x")))

            async def look() -> bool:
                return one.compactor.compactions > 0

            await eventually(look, "the log is part of the base")
        finally:
            working.cancel()
            await asyncio.wait((working,))


@pytest.mark.parametrize("begins", ["with an upload", "with small batches"])
async def test_compaction_does_not_wait_for_small_batches_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """They come all the time, and the log would grow until the longest wait is over."""
    for name, value in {**_EARLY, "UPLOAD_ROWS": 20}.items():
        monkeypatch.setattr(compaction, name, value)
    async with site(tmp_path) as place, place.taking() as one:
        working = asyncio.create_task(one.compactor.run())
        try:
            if begins == "with an upload":
                await one.apply(changes(*((number, "x") for number in range(100))))
                await turn()
                assert one.compactor.compactions == 0
            for number in range(10):
                await one.apply(changes((number, "y")))

            async def look() -> bool:
                return one.compactor.compactions > 0

            await eventually(look, "the log is part of the base")
        finally:
            working.cancel()
            await asyncio.wait((working,))


async def test_compaction_rests_for_as_long_as_the_last_one_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LEAST_LOGGED", 5)
    monkeypatch.setattr(logs, "MOST_ENTRIES", 10)
    async with site(tmp_path) as place, place.taking() as one:
        loop, compactor = asyncio.get_running_loop(), one.compactor
        working = asyncio.create_task(compactor.run())

        async def has_compacted() -> bool:
            return compactor.compactions > 0

        async def is_gathered() -> bool:
            return len(one.log) <= 10

        try:
            compactor.rested_s = loop.time() + 600
            for number in range(30):
                await one.apply(changes((number, "x")))
            await eventually(is_gathered, "small entries are merged meanwhile")
            assert compactor.compactions == 0
            compactor.rested_s = began_s = loop.time()
            await one.apply(changes((30, "x")))
            await eventually(has_compacted, "the log is part of the base")
            assert began_s < compactor.rested_s < loop.time() + 60
        finally:
            working.cancel()
            await asyncio.wait((working,))


async def test_small_entries_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    async with site(tmp_path) as place, place.taking() as one:
        working = asyncio.create_task(one.compactor.run())
        try:
            for number in range(30):
                await one.apply(changes((number, "x")))

            async def look() -> bool:
                return len(one.log) <= 5

            await eventually(look, "entries are few")
            await one.apply(changes((30, "x")))
            held = one.current.ours
            assert held is not None
            going = {each.key for each in held.version.superseded}
            assert going and not going & held.version.keys
        finally:
            working.cancel()
            await asyncio.wait((working,))
        assert await one.ids() == list(range(31))

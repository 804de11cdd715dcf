"""Changes on their way into the log of a dataset.

The state store and the result store are real. A fake replaces the readers, and only records what
they would load.
"""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_acceleration.changes import feed as feeds
from caraway_acceleration.changes import log_entries
from caraway_acceleration.changes.ingesting import (
    ChangesRefusedError,
    QueueFullError,
    SourcePositions,
    StreamStoppedError,
)
from caraway_acceleration.upkeep import logs
from caraway_acceleration.versions.versions import Successor
from caraway_core.changes import Changes, Log, Op
from caraway_core.errors import CarawayError, ExecutionError, StateAwayError, UnavailableError
from tests.acceleration.changes.feeding import CUT, Taking, changes, site
from tests.acceleration.versions.interleavings import play, settled
from tests.kit import member_worlds
from tests.kit.deadlines import eventually
from tests.kit.member_worlds import World
from tests.kit.members import Member
from tests.kit.turns import turn


async def test_changes_are_followed_before_they_are_answered(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        assert await one.apply(changes((1, "a"), (2, "b"))) == 2
        assert await one.ids() == [1, 2]
        assert (
            await one.apply(
                changes(
                    (
                        1,
                        "",
                    ),
                    op=Op.DELETE,
                )
            )
            == 1
        )
        assert await one.ids() == [1, 2, 1]
        assert one.shown[-1].cut == CUT


async def test_what_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        async with place.taking() as one:
            await one.apply(changes((1, "a")))
            await one.feed.apply(changes((2, "b")), None, 10, SourcePositions(None, "at 2"))
        async with place.taking("two") as two:
            assert await two.ids() == [1, 2]
            assert two.feed.position == "at 2"
            await two.apply(changes((3, "c")))
            assert await two.ids() == [1, 2, 3]
            assert two.feed.position == "at 2"


async def test_waiting_requests_are_logged_together_in_order(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        one.readers.may_load.clear()
        asked = [asyncio.ensure_future(one.apply(changes((n, "x")))) for n in range(20)]
        await turn()
        one.readers.may_load.set()
        assert await asyncio.gather(*asked) == [1] * 20
        assert await one.ids() == list(range(20))
        assert len(one.log) < 20


@pytest.mark.parametrize(("size", "batches"), [(3, 1), (5_000, 4)], ids=["small", "large"])
async def test_only_small_batches_are_copied_together(
    tmp_path: Path, size: int, batches: int
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        part = changes(*((number, "x") for number in range(size))).rows
        sent = Changes(pa.concat_tables([part] * 4), 4 * size)
        await one.apply(sent)
        [entry] = one.log
        stored = [each async for each in place.results.read_chunk(entry.chunk.key, entry.chunk)]
        assert len(stored) == batches
        assert pa.Table.from_batches(stored).equals(sent.rows)


async def test_a_repeated_request_changes_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        async with place.taking() as one:
            assert await one.apply(changes((1, "a")), "r1") == 1
            assert await one.apply(changes((1, "a")), "r1") == 1
            both = [one.apply(changes((2, "b")), "r2") for _ in range(2)]
            assert list(await asyncio.gather(*both)) == [1, 1]
        async with place.taking("two") as two:
            assert await two.apply(changes((1, "a")), "r1") == 1
            assert await two.ids() == [1, 2]


async def test_batches_of_a_source_are_applied_once_and_in_order(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one, place.taking("two") as two:
        await one.feed.apply(changes((1, "a")), None, 10, SourcePositions(None, "1"))
        for whence in (SourcePositions(None, "1"), SourcePositions("2", "3")):
            with pytest.raises(ChangesRefusedError, match="has advanced"):
                await two.feed.apply(changes((1, "a")), None, 10, whence)
        await two.feed.apply(changes((2, "b")), None, 10, SourcePositions("1", "2"))
        with pytest.raises(ChangesRefusedError, match="has advanced"):
            await one.feed.apply(changes((2, "b")), None, 10, SourcePositions("1", "2"))
        await one.feed.apply(changes((3, "c")), None, 10, SourcePositions("2", "3"))
        assert await one.ids() == [1, 2, 3]


async def test_an_incomplete_load_is_durable_but_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_ENTRIES", 4)
    async with site(tmp_path) as place:
        async with place.taking() as one:
            await one.apply(changes((0, "old")))
            working = asyncio.create_task(one.compactor.run())
            for number in range(1, 9):
                after = None if number == 1 else str(number - 1)
                whence = SourcePositions(after, str(number), is_whole=False)
                await one.feed.apply(changes((number, "new")), None, 10, whence)
                assert await one.ids() == [0]
                # Entries that are not read yet are loaded anyway, one part at a time.
                assert one.readers.most_rows == 1 + number

            async def look() -> bool:
                return len(one.log) < 8

            await eventually(look, "entries are gathered")
            working.cancel()
            await asyncio.wait((working,))
            assert await one.ids() == [0]
        async with place.taking("two") as two:
            assert two.feed.position == "8"
            assert await two.ids() == [0]
            await two.feed.apply(changes((9, "new")), None, 10, SourcePositions("8", "9"))
            assert await two.ids() == list(range(10))


async def test_rejected_changes_stay_rejected_when_others_are_retried(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        await one.feed.apply(
            changes((1, "a")), None, 10, SourcePositions(None, "1", is_whole=False)
        )
        async with place.taking("two") as two:
            two.readers.may_load.clear()
            part = SourcePositions("1", "2", is_whole=False)
            refused = asyncio.ensure_future(two.apply(changes((7, "x"))))
            late = asyncio.ensure_future(two.feed.apply(changes((2, "b")), None, 10, part))
            with pytest.raises(StreamStoppedError, match="is being loaded"):
                await refused
            # The load completes meanwhile, so changes of clients are accepted again.
            await one.feed.apply(changes((2, "b")), None, 10, SourcePositions("1", "2"))
            two.readers.may_load.set()
            with pytest.raises(ChangesRefusedError, match="has advanced"):
                await late
            assert await two.apply(changes((3, "c"))) == 1
            assert await two.ids() == [1, 2, 3]


async def test_schedulers_apply_changes_concurrently(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one, place.taking("two") as two:
        asked = [(one if n % 2 else two).apply(changes((n, "x"))) for n in range(40)]
        assert await asyncio.gather(*asked) == [1] * 40
        await one.apply(changes((100, "x")))
        assert sorted(await one.ids()) == [*range(40), 100]


async def test_only_the_faulty_request_of_a_group_fails(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        poison = 7 * 3

        def fails(log: Log) -> BaseException | None:
            rows = log[-1].chunk.row_count if log else 0
            return ExecutionError("the key is there twice") if rows >= 3 else None

        one.readers.fails = fails
        one.readers.may_load.clear()
        first = asyncio.ensure_future(one.apply(changes((0, "x"))))
        await turn()
        good = [asyncio.ensure_future(one.apply(changes((n, "x")))) for n in (1, 2)]
        bad = asyncio.ensure_future(
            one.apply(changes((poison, "x"), (poison + 1, "x"), (poison + 2, "x")))
        )
        one.readers.may_load.set()
        assert await asyncio.gather(first, *good) == [1, 1, 1]
        with pytest.raises(ExecutionError, match="there twice"):
            await bad
        assert sorted(await one.ids()) == [0, 1, 2]


async def test_a_queue_that_stays_full_is_an_error_in_time(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        one.readers.may_load.clear()
        held = asyncio.ensure_future(one.apply(changes((0, "x"))))
        waiting = [
            asyncio.ensure_future(one.apply(changes((n, "x"))))
            for n in range(1, feeds.MOST_WAITING + 100)
        ]
        for _ in range(5):
            await turn()
        with pytest.raises(QueueFullError, match="none of them is applied"):
            await one.apply(changes((9999, "x")), within_s=0.05)
        one.readers.may_load.set()
        assert await held == 1
        assert sum(await asyncio.gather(*waiting)) == len(waiting)
        assert 9999 not in await one.ids()


async def test_time_that_runs_out_in_the_middle_says_so(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        one.readers.may_load.clear()
        with pytest.raises(QueueFullError, match="may or may not be applied; send them again"):
            await one.apply(changes((1, "x")), within_s=0.1)
        one.readers.may_load.set()
        await one.apply(changes((2, "x")))
        assert await one.ids() == [1, 2]


async def test_nothing_is_answered_while_the_state_store_is_away(tmp_path: Path) -> None:
    async with site(tmp_path) as place, place.taking() as one:
        one.store.away = StateAwayError("the state store is away")
        with pytest.raises(StateAwayError):
            await one.apply(changes((1, "x")))
        one.store.away = None
        await one.apply(changes((2, "x")))
        assert await one.ids() == [2]


async def test_a_feed_that_ends_rejects_waiting_requests(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        async with place.taking() as one:
            one.readers.may_load.clear()
            waiting = [asyncio.ensure_future(one.apply(changes((n, "x")))) for n in range(3)]
            await turn()
        for each in waiting:
            with pytest.raises(StreamStoppedError):
                await each
        with pytest.raises(StreamStoppedError):
            await one.apply(changes((9, "x")))


async def test_rows_with_other_columns_are_not_discarded(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        async with place.taking() as one:
            await one.apply(changes((1, "a")))
        with pytest.raises(CarawayError, match="choose another name"):
            async with place.taking("two", origin="other"):
                pass


async def test_rows_that_an_earlier_release_stored_are_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path) as made:
        async with made.taking(origin="c28cc9683b7dd3ce") as taking:
            await taking.apply(changes((1, "a")))
        async with made.taking(origin="v2-2d09eeca1d929f19") as taking:
            assert await taking.ids() == [1]
            assert taking.current.ours is not None
            assert taking.current.ours.version.fingerprint == "v2-2d09eeca1d929f19"
            await taking.apply(changes((2, "b")))
            assert await taking.ids() == [1, 2]
        assert "an earlier release stored the rows" in caplog.text
        # With an origin of this release, another definition is known to be another one.
        with pytest.raises(CarawayError, match="stored with another source"):
            async with made.taking(origin="v2-0000000000000000"):
                pass


def version_of(one: Taking) -> int:
    assert one.current.ours is not None
    return one.current.ours.version.number


async def test_many_rows_become_several_entries_that_count_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_entries, "ENTRY_BYTES", 4_000)
    async with site(tmp_path) as place, place.taking() as one:
        before = version_of(one)
        assert await one.apply(changes(*((number, "x") for number in range(1_000)))) == 1_000
        assert len(one.log) > 3 and version_of(one) == before + 1
        rows = await logs.read(place.results, one.log)
        assert rows["id"].to_pylist() == list(range(1_000))


def test_changes_that_always_lose_the_race_are_rejected() -> None:
    async def work(world: World) -> None:
        one, two = (Member(world, name, []).begin() for name in ("one", "two"))
        await asyncio.gather(one.until_shown(), two.until_shown())
        real = one.current.loaded

        async def overtaken(successor: Successor) -> Successor:
            assert await two.insert()
            return await real(successor)

        one.current.loaded = overtaken  # type: ignore[method-assign]
        with pytest.raises(UnavailableError, match="none of these is applied; send them again"):
            await one.feed.apply(member_worlds.changes(1000), None, 1e6)
        one.current.loaded = real  # type: ignore[method-assign]
        assert await one.insert()
        await settled(world, [one, two])

    play(1, work, steps_take_time=False)

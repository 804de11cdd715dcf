"""Batches of a replication slot: whole transactions, limits, idle logs and cancellation."""

import asyncio
from datetime import UTC, datetime

import pytest

from caraway_core.changes import OP, Op
from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres import positions
from caraway_plugins.changes.postgres.streaming import StreamLimits
from tests.kit.postgres import Server
from tests.plugins.changes.postgres.conftest import Feed, Followed

WAIT_S = 60.0


async def taken(feed: Feed, rows: int) -> list[int]:
    """Apply batches until they had this many rows; return the rows of each."""
    sizes: list[int] = []
    async with asyncio.timeout(WAIT_S):
        while sum(sizes) < rows:
            sizes.append((await feed.next()).changes.rows.num_rows)
    return sizes


async def test_a_batch_says_when_its_last_transaction_was_committed(followed: Followed) -> None:
    async with followed.following(StreamLimits()) as feed:
        await feed.load()
        before = datetime.now(UTC)
        followed.together("INSERT INTO $t VALUES (10)")
        batch = await feed.next()
    assert batch.made_at is not None and before <= batch.made_at <= datetime.now(UTC)


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
async def test_a_batch_ends_with_a_transaction_and_never_within_one(
    followed: Followed, batch_rows: int
) -> None:
    async with followed.following(StreamLimits(batch_rows=batch_rows)) as feed:
        await feed.load()
        for start in range(10, 60, 5):
            followed.together(f"INSERT INTO $t SELECT i FROM generate_series({start}, {start}+4) i")
        sizes = await taken(feed, 50)
    assert all(size % 5 == 0 for size in sizes)
    if batch_rows == 1:
        assert sizes == [5] * 10
    assert set(followed.replica.rows) == {(1,), (2,), *((number,) for number in range(10, 60))}


@pytest.mark.parametrize(
    "limits", [StreamLimits(largest_rows=4), StreamLimits(largest_bytes=2_000)]
)
async def test_a_transaction_beyond_a_limit_comes_in_parts_that_say_so(
    followed: Followed, limits: StreamLimits
) -> None:
    async with followed.following(limits) as feed:
        await feed.load()
        followed.together(
            "INSERT INTO $t SELECT i, repeat('x', 300) FROM generate_series(10, 59) i"
        )
        parts = [await feed.next() for _ in range(3)]
        assert not any(part.is_whole for part in parts)
        assert all(positions.read(part.position).open_lsn for part in parts)
        async with asyncio.timeout(WAIT_S):
            while not (last := await feed.next()).is_whole:
                pass
        assert positions.read(last.position).open_lsn == 0
    assert len(followed.replica.rows) == 52


@pytest.mark.parametrize("is_new_session", [False, True])
async def test_the_end_of_a_transaction_in_parts_is_told_without_more_rows(
    followed: Followed, is_new_session: bool
) -> None:
    """The last part may have all rows, so that only the end of the transaction is left."""
    limits = StreamLimits(largest_rows=10, idle_s=10_000)
    async with followed.following(limits) as feed:
        await feed.load()
        followed.together("INSERT INTO $t SELECT i FROM generate_series(10, 29) i")
        parts = [await feed.next(), await feed.next()]
        assert not any(part.is_whole for part in parts)
        if not is_new_session:
            last = await asyncio.wait_for(feed.next(), WAIT_S)
    if is_new_session:
        async with followed.following(limits) as feed:
            last = await asyncio.wait_for(feed.next(), WAIT_S)
    assert last.is_whole and last.changes.rows.num_rows == 0
    assert positions.read(last.position).open_lsn == 0
    assert len(followed.replica.rows) == 22


async def test_a_transaction_in_parts_goes_on_after_each_of_its_parts(followed: Followed) -> None:
    limits = StreamLimits(largest_rows=10)
    async with followed.following(limits) as feed:
        await feed.load()
    followed.together(
        "INSERT INTO $t SELECT i FROM generate_series(10, 59) i", "DELETE FROM $t WHERE id = 1"
    )
    followed.sql("INSERT INTO $t VALUES (100)")
    # A new session for each part, as if the scheduler ended after every one.
    for _ in range(20):
        async with followed.following(limits) as feed:
            await feed.next(confirms=False)
        if (100,) in followed.replica.rows:
            break
    expected = {(2,), (100,), *((number,) for number in range(10, 60))}
    assert set(followed.replica.rows) == expected
    assert followed.replica.ops.count(Op.DELETE) == 1


async def test_nothing_comes_of_a_transaction_that_is_rolled_back(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        connection = followed.server.connect()
        connection.autocommit = False
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {followed.table} VALUES (50)")
        connection.rollback()
        connection.close()
        followed.sql("INSERT INTO $t VALUES (51)")
        batch = await feed.next()
    assert batch.changes.rows.column("id").to_pylist() == [51]


async def test_savepoints_that_are_undone_leave_nothing(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.together(
            "INSERT INTO $t VALUES (10)", "SAVEPOINT a", "INSERT INTO $t VALUES (11)",
            "ROLLBACK TO a", "INSERT INTO $t VALUES (12)",
        )  # fmt: skip
        batch = await feed.next()
    assert batch.changes.rows.column("id").to_pylist() == [10, 12]


async def test_a_row_that_changes_often_in_one_transaction_ends_as_its_last(
    followed: Followed,
) -> None:
    async with followed.following() as feed:
        await feed.load()
        changes = [f"UPDATE $t SET note = 'v{number}' WHERE id = 1" for number in range(20)]
        followed.together(*changes, "DELETE FROM $t WHERE id = 1", "INSERT INTO $t VALUES (1)",
                          "UPDATE $t SET note = NULL WHERE id = 2")  # fmt: skip
        await feed.next()
    assert {key: row["note"] for key, row in followed.replica.rows.items()} == {
        (1,): None,
        (2,): None,
    }


async def test_truncation_with_rows_in_one_transaction_keeps_its_place(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.together(
            "INSERT INTO $t VALUES (3)", "TRUNCATE $t", "INSERT INTO $t VALUES (4)",
        )  # fmt: skip
        batch = await feed.next()
    assert Op.TRUNCATE in [Op(each) for each in batch.changes.rows.column(OP).to_pylist()]
    assert set(followed.replica.rows) == {(4,)}


async def test_the_table_of_a_truncated_list_is_found(followed: Followed) -> None:
    followed.sql("CREATE TABLE $t_other (id int PRIMARY KEY)")
    async with followed.following() as feed:
        await feed.load()
        followed.sql("ALTER PUBLICATION caraway_$t ADD TABLE $t_other")
        followed.together("INSERT INTO $t_other VALUES (1)", "TRUNCATE $t_other, $t")
        await feed.next()
    assert followed.replica.rows == {}


async def test_a_log_without_rows_of_the_table_lets_the_server_discard_it(
    followed: Followed,
) -> None:
    followed.sql("CREATE TABLE $t_noise (id int)")
    async with followed.following(StreamLimits(idle_s=0.05)) as feed:
        await feed.load()
        before = positions.read(followed.replica.position or "").lsn
        followed.sql("INSERT INTO $t_noise SELECT i FROM generate_series(1, 1000) i")
        async with asyncio.timeout(WAIT_S):
            while True:
                batch = await anext(feed.batches)
                if positions.read(batch.position).lsn > before:
                    break
        assert batch.changes.rows.num_rows == 0 and batch.is_whole
        await feed.source.confirm(batch.position)


async def test_a_position_never_goes_back(followed: Followed) -> None:
    seen: list[int] = []
    async with followed.following(StreamLimits(batch_rows=3, idle_s=0.01)) as feed:
        await feed.load()
        for number in range(10, 30):
            followed.sql(f"INSERT INTO $t VALUES ({number})")
            seen.append(positions.read((await feed.next()).position).lsn)
    assert seen == sorted(seen) and len(set(seen)) == len(seen)


async def test_cancelling_a_read_that_waits_frees_the_slot_at_once(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        waiting = asyncio.ensure_future(feed.next())
        await asyncio.wait((waiting,), timeout=0.1)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert waiting.cancelled()
    # A new session takes the slot, and nothing is lost.
    followed.sql("INSERT INTO $t VALUES (3, 'three')")
    async with followed.following() as feed:
        await feed.next()
    assert (3,) in followed.replica.rows


async def test_a_connection_that_the_server_ends_is_an_error_of_the_table(
    postgres: Server, followed: Followed
) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (10)")
        await feed.next()
        postgres.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
            f"WHERE slot_name = 'caraway_{followed.table}'"
        )
        with pytest.raises(DatasetError, match=followed.table) as caught:
            await asyncio.wait_for(feed.next(), WAIT_S)
        assert caught.value.type == "unavailable"
    followed.sql("INSERT INTO $t VALUES (3)")
    async with followed.following() as feed:
        await feed.next()
    assert (3,) in followed.replica.rows


async def test_confirming_an_earlier_position_does_not_move_the_slot_back(
    postgres: Server, followed: Followed
) -> None:
    def confirmed() -> int:
        query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = "
        ((text,),) = postgres.rows(f"{query}'caraway_{followed.table}'")
        return positions.lsn(text)

    async with followed.following() as feed:
        await feed.load()
        first = followed.replica.position or ""
        followed.sql("INSERT INTO $t VALUES (3)")
        last = (await feed.next()).position
        await feed.source.confirm(first)
        async with asyncio.timeout(WAIT_S):
            while confirmed() < positions.read(last).lsn:
                await asyncio.sleep(0.01)


async def test_what_is_confirmed_after_the_end_is_ignored(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        source, position = feed.source, followed.replica.position or ""
    await source.confirm(position)
    await source.aclose()
    await source.aclose()


async def test_a_second_reader_of_the_slot_is_refused(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (10)")
        await feed.next()
        async with followed.following() as other:
            with pytest.raises(DatasetError, match="is in use"):
                await asyncio.wait_for(other.next(), WAIT_S)
        followed.sql("INSERT INTO $t VALUES (3)")
        await feed.next()
    assert (3,) in followed.replica.rows


async def test_a_publication_that_went_is_told_at_the_next_start(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
    followed.sql("DROP PUBLICATION caraway_$t")
    async with followed.following() as feed:
        with pytest.raises(DatasetError, match=r"publication 'caraway_.*' no longer exists"):
            await asyncio.wait_for(feed.next(), WAIT_S)

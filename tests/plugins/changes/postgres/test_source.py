"""Replication of a table from a real server."""

import asyncio
from typing import Any

import pytest

from caraway_core.changes import OP, Op
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import reading
from caraway_plugins.changes.postgres.streaming import StreamLimits
from tests.kit.deadlines import eventually
from tests.plugins.changes.postgres.conftest import Followed


def notes(followed: Followed) -> dict[int, str | None]:
    return {key[0]: row["note"] for key, row in sorted(followed.replica.rows.items())}


async def test_the_rows_come_first_and_then_what_changes(followed: Followed) -> None:
    async with followed.following() as feed:
        first = await feed.next()
        assert first.is_whole and first.changes.received == 2
        assert notes(followed) == {1: "one", 2: "two"}
        followed.together(
            "INSERT INTO $t VALUES (3, NULL)",
            "UPDATE $t SET note = 'eins' WHERE id = 1",
            "DELETE FROM $t WHERE id = 2",
        )
        batch = await feed.next()
    assert batch.is_whole and batch.changes.received == 3
    assert notes(followed) == {1: "eins", 3: None}


async def test_a_login_of_another_encoding_has_the_same_texts(followed: Followed) -> None:
    followed.sql("ALTER ROLE postgres SET client_encoding = 'LATIN1'")
    try:
        followed.sql(r"UPDATE $t SET note = U&'\00fc' WHERE id = 1")
        async with followed.following() as feed:
            await feed.load()
            assert notes(followed) == {1: "ü", 2: "two"}
            followed.sql(r"UPDATE $t SET note = U&'\00df' WHERE id = 2")
            await feed.next()
        assert notes(followed) == {1: "ü", 2: "ß"}
    finally:
        followed.sql("ALTER ROLE postgres RESET client_encoding")


async def test_what_changes_while_rows_are_loaded_is_not_lost(followed: Followed) -> None:
    followed.sql("INSERT INTO $t SELECT g, 'g' FROM generate_series(10, 12000) g")
    async with followed.following() as feed:
        assert not (await feed.next()).is_whole
        followed.sql("UPDATE $t SET note = 'late' WHERE id = 11999")
        await feed.load()
        assert notes(followed)[11999] == "g"
        await feed.next()
    assert notes(followed)[11999] == "late"
    assert len(followed.replica.rows) == 11_993


async def test_rows_are_as_they_were_where_the_log_begins(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading.snapshot

    def late(*arguments: Any) -> Any:
        followed.sql("INSERT INTO $t VALUES (3, 'between')")
        return read(*arguments)

    monkeypatch.setattr(reading, "snapshot", late)
    async with followed.following() as feed:
        await feed.load()
        assert notes(followed) == {1: "one", 2: "two"}
        await feed.next()
    assert notes(followed) == {1: "one", 2: "two", 3: "between"}


async def test_a_key_that_changes_is_a_row_less_and_a_row_more(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("UPDATE $t SET id = 20 WHERE id = 2")
        batch = await feed.next()
    assert batch.changes.rows.column(OP).to_pylist() == [Op.DELETE, Op.UPSERT]
    assert notes(followed) == {1: "one", 20: "two"}


async def test_a_truncated_table_is_empty_until_rows_come(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.together("TRUNCATE $t", "INSERT INTO $t VALUES (5, 'five')")
        await feed.next()
    assert notes(followed) == {5: "five"}


async def test_an_empty_table_is_loaded_too(followed: Followed) -> None:
    followed.sql("DELETE FROM $t")
    async with followed.following() as feed:
        batch = await feed.next()
        assert batch.is_whole and batch.changes.received == 0
        followed.sql("INSERT INTO $t VALUES (7, 'seven')")
        await feed.next()
    assert notes(followed) == {7: "seven"}


async def test_transactions_of_other_tables_and_rollbacks_say_nothing(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("CREATE TABLE IF NOT EXISTS other (id int)", "INSERT INTO other VALUES (1)")
        followed.sql("BEGIN; INSERT INTO $t VALUES (8, 'no'); ROLLBACK")
        followed.sql("INSERT INTO $t VALUES (9, 'yes')")
        batch = await feed.next()
    assert batch.changes.rows.num_rows == 1


async def test_what_was_applied_but_not_confirmed_does_not_come_twice(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next(confirms=False)
    followed.replica.ops.clear()
    followed.sql("INSERT INTO $t VALUES (4, 'four')")
    async with followed.following() as feed:
        await feed.next()
    assert followed.replica.ops == [Op.UPSERT]
    assert notes(followed) == {1: "one", 2: "two", 3: "three", 4: "four"}


async def test_what_was_given_but_not_applied_comes_again(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        while not (await anext(feed.batches)).changes.received:
            pass
    async with followed.following() as feed:
        await feed.next()
    assert notes(followed)[3] == "three"


async def test_a_load_that_was_broken_off_begins_anew(followed: Followed) -> None:
    followed.sql("INSERT INTO $t SELECT g, 'g' FROM generate_series(10, 12000) g")
    async with followed.following() as feed:
        await feed.next()
    followed.sql("DELETE FROM $t WHERE id >= 10")
    async with followed.following() as feed:
        await feed.load()
    assert notes(followed) == {1: "one", 2: "two"}


async def test_a_huge_transaction_comes_in_parts_and_is_gone_on_with(followed: Followed) -> None:
    limits = StreamLimits(largest_rows=400)
    async with followed.following(limits) as feed:
        await feed.load()
        followed.sql("INSERT INTO $t SELECT g, 'g' FROM generate_series(10, 1009) g")
        part = await feed.next()
        assert not part.is_whole and part.changes.rows.num_rows == 400
    followed.replica.ops.clear()
    async with followed.following(limits) as feed:
        while not (await feed.next()).is_whole:
            pass
    assert len(followed.replica.ops) == 600
    assert len(followed.replica.rows) == 1_002


async def test_a_large_value_that_did_not_change_is_read_from_the_table(followed: Followed) -> None:
    large = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) g)"
    followed.sql(
        "ALTER TABLE $t ALTER note SET STORAGE EXTERNAL, ADD n int",
        f"UPDATE $t SET note = {large} WHERE id = 1",
    )
    async with followed.following() as feed:
        await feed.load()
        followed.replica.rows.clear()
        followed.sql("UPDATE $t SET n = 5 WHERE id = 1")
        await feed.next()
    (row,) = followed.replica.rows.values()
    assert row["n"] == 5 and len(row["note"]) == 32_000


async def test_a_large_value_of_a_row_that_is_gone_is_not_waited_for(followed: Followed) -> None:
    large = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) g)"
    followed.sql(
        "ALTER TABLE $t ALTER note SET STORAGE EXTERNAL, ADD n int",
        f"UPDATE $t SET note = {large} WHERE id = 1",
    )
    async with followed.following() as feed:
        await feed.load()
        followed.together("UPDATE $t SET n = 5 WHERE id = 1", "DELETE FROM $t WHERE id = 1")
        await feed.next()
    assert notes(followed) == {2: "two"}


async def test_whole_old_rows_are_enough_without_a_look_at_the_table(followed: Followed) -> None:
    large = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) g)"
    followed.sql(
        "ALTER TABLE $t REPLICA IDENTITY FULL, ALTER note SET STORAGE EXTERNAL",
        f"UPDATE $t SET note = {large} WHERE id = 1",
    )
    async with followed.following() as feed:
        await feed.load()
        followed.together("UPDATE $t SET id = 10 WHERE id = 1", "UPDATE $t SET note = 'short'")
        await feed.next()
    assert notes(followed) == {2: "short", 10: "short"}


async def test_the_position_follows_a_log_that_grows_without_rows(followed: Followed) -> None:
    async with followed.following(StreamLimits(idle_s=0.05)) as feed:
        await feed.load()
        loaded = feed.replica.position
        followed.sql("CREATE TABLE IF NOT EXISTS busy (id int)", "INSERT INTO busy VALUES (1)")
        batch = await feed.next()
    assert batch.changes.rows.num_rows == 0 and batch.position != loaded
    followed.sql("INSERT INTO $t VALUES (3, 'three')")
    async with followed.following() as feed:
        await feed.next()
    assert notes(followed)[3] == "three"


async def test_a_table_that_goes_is_noticed_though_the_log_does_not_say_so(
    followed: Followed,
) -> None:
    async with followed.following(StreamLimits(idle_s=0.05)) as feed:
        await feed.load()
        followed.sql("DROP TABLE $t")
        with pytest.raises(DatasetError, match="is not in the database"):
            while True:
                await feed.next()


async def test_the_server_hears_of_us_while_a_batch_is_applied(followed: Followed) -> None:
    def heard() -> Any:
        return followed.server.rows("SELECT max(reply_time) FROM pg_stat_replication")

    async with followed.following(StreamLimits(beat_s=0.02)) as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next()
        first = heard()

        async def again() -> bool:
            return bool(heard() > first)

        await eventually(again, "the server heard of us again")


async def test_a_load_that_has_to_wait_can_be_cancelled(followed: Followed) -> None:
    busy = followed.server.connect()
    busy.autocommit = False
    try:
        with busy.cursor() as cursor:
            cursor.execute(f"INSERT INTO {followed.table} VALUES (3, 'not yet')")
        async with followed.following() as feed:
            loading = asyncio.ensure_future(anext(feed.batches))

            async def waits() -> bool:
                return bool(
                    followed.server.rows(
                        "SELECT FROM pg_stat_activity WHERE backend_type = 'walsender' "
                        "AND wait_event_type = 'Lock'"
                    )
                )

            await eventually(waits, "the slot waits for the transaction")
            loading.cancel()
            async with asyncio.timeout(60):
                await asyncio.gather(loading, return_exceptions=True)
        assert loading.cancelled()
    finally:
        busy.close()
    async with followed.following() as feed:
        await feed.load()
    assert notes(followed) == {1: "one", 2: "two"}


async def test_confirmed_log_is_let_go_of(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        batch = await feed.next()

    async def is_confirmed() -> bool:
        ((confirmed,),) = followed.server.rows(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots "
            f"WHERE slot_name = 'caraway_{followed.table}'"
        )
        return f'"lsn":"{confirmed}"' in batch.position

    # The server processes the feedback only when it gets to it.
    await eventually(is_confirmed, "the server was told how far changes were read")


async def test_a_lost_slot_is_told_and_rows_are_read_anew(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
    followed.server.drop_slots()
    followed.sql("DELETE FROM $t WHERE id = 1")
    async with followed.following() as feed:
        with pytest.raises(
            PositionLostError, match=r"slot 'caraway_\w+' no longer exists.* reloading"
        ):
            await feed.next()
    followed.replica.position = None
    async with followed.following() as feed:
        await feed.load()
    assert notes(followed) == {2: "two"}


async def test_a_slot_that_another_client_read_is_detected(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        position = feed.replica.position
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next()
    followed.replica.position = position
    async with followed.following() as feed:
        with pytest.raises(PositionLostError, match="another client read"):
            await feed.next()


async def test_a_slot_in_use_is_not_touched(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next()
        async with followed.following() as second:
            with pytest.raises(DatasetError, match="is in use"):
                await second.next()


async def test_a_new_column_stops_the_stream_and_says_what_to_do(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("ALTER TABLE $t ADD extra int", "INSERT INTO $t VALUES (3, 'x', 1)")
        with pytest.raises(DatasetError, match="new column 'extra'; undo that, or list") as told:
            await feed.next()
    assert told.value.code == "dataset.schema"
    async with followed.following() as feed:
        with pytest.raises(DatasetError, match="different columns than when it was loaded"):
            await feed.next()


async def test_a_new_type_stops_the_stream(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.sql("ALTER TABLE $t ALTER note TYPE varchar(9)", "INSERT INTO $t VALUES (3, 'x')")
        with pytest.raises(DatasetError, match="different type for column 'note'"):
            await feed.next()


async def test_a_killed_server_is_an_error_and_the_stream_goes_on_later(
    followed: Followed,
) -> None:
    async with followed.following() as feed:
        await feed.load()
        followed.server.kill()
        with pytest.raises(DatasetError) as told:
            await feed.next()
    assert told.value.type == "unavailable"
    async with followed.following() as feed:
        with pytest.raises(DatasetError) as told:
            await feed.next()
    assert told.value.type == "unavailable"
    followed.server.start()
    followed.sql("INSERT INTO $t VALUES (3, 'three')")
    async with followed.following() as feed:
        await feed.next()
    assert notes(followed)[3] == "three"

"""Publications and slots of a real server: made once, checked, and never taken from others."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import catalog, connecting, slots
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.positions import PostgresPosition
from tests.kit.postgres import Server
from tests.plugins.changes.postgres.conftest import Followed


@contextmanager
def opened(followed: Followed, **params: str) -> Iterator[tuple[Any, Any, Table]]:
    """A connection for statements, one for replication, and the table."""
    followed.params = {**followed.params, **params}
    place = followed.source()._place
    plain, replication = connecting.connect(place), connecting.connect_for_replication(place)
    try:
        yield plain, replication, catalog.look(plain, place, (), ())
    finally:
        connecting.close(plain)
        connecting.close(replication)


def begun(plain: Any, replication: Any, table: Table) -> PostgresPosition:
    slots.publish(plain, table.place)
    return replace(slots.begin(plain, replication, table).at, is_loading=False)


def test_a_publication_is_made_once(postgres: Server, followed: Followed) -> None:
    with opened(followed) as (plain, _, table):
        assert not slots.is_published(plain, table.place)
        slots.publish(plain, table.place)
        slots.publish(plain, table.place)
        assert slots.is_published(plain, table.place)
    found = postgres.rows(
        "SELECT schemaname, tablename FROM pg_publication_tables "
        f"WHERE pubname = 'caraway_{followed.table}'"
    )
    assert found == [("public", followed.table)]


def test_a_publication_of_all_tables_will_do(followed: Followed) -> None:
    with opened(followed, pg_publication=f"all {followed.table}") as (plain, _, table):
        followed.sql(f"CREATE PUBLICATION {connecting.quoted(table.place.publication)} "
                     "FOR ALL TABLES")  # fmt: skip
        assert slots.is_published(plain, table.place)
        followed.sql(f"DROP PUBLICATION {connecting.quoted(table.place.publication)}")


@pytest.mark.parametrize("name", ["plain", 'we"ird', "Two Words", "it's; --"])
@pytest.mark.parametrize("fault", ["no table", "no updates"])
def test_remedy_of_a_publication_can_be_run_as_it_is_written(
    followed: Followed, name: str, fault: str
) -> None:
    publication = f"{name} {fault[3]} {followed.table}"
    with opened(followed, pg_publication=publication) as (plain, _, table):
        made = f"CREATE PUBLICATION {connecting.quoted(publication)}"
        followed.sql(
            made if fault == "no table" else f"{made} FOR TABLE $t WITH (publish = 'insert')"
        )
        with pytest.raises(DatasetError, match="run: ALTER PUBLICATION") as caught:
            slots.publish(plain, table.place)
        assert caught.value.type == "invalid" and publication in caught.value.message
        followed.sql(caught.value.message.partition("run: ")[2])
        assert slots.is_published(plain, table.place)


@pytest.mark.parametrize("name", ["plain", 'we"ird', "it's; --"])
def test_statement_for_an_administrator_can_be_run_as_it_is_written(
    followed: Followed, name: str
) -> None:
    publication = f"{name} {followed.table}"
    role = f"reader_{followed.table}_{len(name)}"
    followed.sql(f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT SELECT ON $t TO {role}")
    with opened(followed, pg_publication=publication, pg_user=role) as (plain, _, table):
        with pytest.raises(DatasetError, match="have an administrator run: ") as caught:
            slots.publish(plain, table.place)
        assert caught.value.type == "auth"
        followed.sql(caught.value.message.partition("administrator run: ")[2])
        slots.publish(plain, table.place)


def test_a_new_snapshot_takes_the_place_of_the_slot(postgres: Server, followed: Followed) -> None:
    with opened(followed) as (plain, replication, table):
        first = begun(plain, replication, table)
    followed.sql("INSERT INTO $t VALUES (3, 'three')")
    with opened(followed) as (plain, replication, table):
        second = begun(plain, replication, table)
        assert second.lsn > first.lsn and second.generation != first.generation
        slots.check(plain, table, second)
        with pytest.raises(PositionLostError, match="another client read"):
            slots.check(plain, table, replace(first, generation=second.generation))
    count = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE '%{}'"
    assert postgres.rows(count.format(followed.table)) == [(1,)]


def test_the_snapshot_shows_the_rows_as_they_were(followed: Followed) -> None:
    with opened(followed) as (plain, replication, table):
        slots.publish(plain, table.place)
        snapshot = slots.begin(plain, replication, table)
        followed.sql("DELETE FROM $t")
        plain.autocommit = False
        with plain.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'")
            cursor.execute(f"SELECT count(*) FROM {table.place.quoted}")
            assert cursor.fetchone() == (2,)
        plain.rollback()
        assert snapshot.at.is_loading


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("DROP PUBLICATION caraway_$t", PositionLostError,
         "the publication 'caraway_.*' no longer exists, so changes are missing; reloading"),
        ("SELECT pg_drop_replication_slot('caraway_$t')", PositionLostError,
         "the replication slot 'caraway_.*' no longer exists"),
        ("SELECT pg_replication_slot_advance('caraway_$t', pg_current_wal_lsn())",
         PositionLostError, "another client read from the replication slot"),
        ("ALTER PUBLICATION caraway_$t SET (publish = 'insert')", DatasetError, "omits some"),
        ("ALTER PUBLICATION caraway_$t DROP TABLE $t", DatasetError, "does not include table"),
    ],
)  # fmt: skip
def test_a_position_that_is_lost_says_why(
    followed: Followed, change: str, error: type[Exception], said: str
) -> None:
    with opened(followed) as (plain, replication, table):
        at = begun(plain, replication, table)
        slots.check(plain, table, at)
        followed.sql("INSERT INTO $t VALUES (3, 'three')", change)
        with pytest.raises(error, match=said):
            slots.check(plain, table, at)


def test_a_position_of_other_columns_is_refused_with_both_remedies(followed: Followed) -> None:
    with opened(followed) as (plain, replication, table):
        at = begun(plain, replication, table)
        with pytest.raises(DatasetError, match=r"undo that, or list the columns.*reloads") as told:
            slots.check(plain, table, replace(at, columns="other"))
        assert told.value.type == "schema"


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_position_of_another_server_or_table_is_lost(followed: Followed, part: int) -> None:
    with opened(followed) as (plain, replication, table):
        at = begun(plain, replication, table)
        parts = at.generation.split("/")
        parts[part] += "1"
        with pytest.raises(PositionLostError, match="was replaced by another table; reloading"):
            slots.check(plain, table, replace(at, generation="/".join(parts)))


def test_a_slot_in_use_is_neither_read_nor_dropped(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "_HANDOVER_S", 0.0)
    with opened(followed) as (plain, replication, table):
        at = begun(plain, replication, table)
        cursor = replication.cursor()
        cursor.start_replication(
            slot_name=table.place.slot,
            options={"proto_version": "1", "publication_names": f'"{table.place.publication}"'},
        )
        with opened(followed) as (other, other_replication, _):
            with pytest.raises(DatasetError, match="is in use; each dataset needs its own slot"):
                slots.check(other, table, at)
            with pytest.raises(DatasetError, match=r"params\.pg_replication_slot"):
                slots.begin(other, other_replication, table)


def test_a_slot_of_another_database_is_not_taken(postgres: Server, followed: Followed) -> None:
    postgres.execute(f"CREATE DATABASE other_{followed.table}")
    with opened(followed) as (plain, replication, table):
        begun(plain, replication, table)
    there = {"pg_db": f"other_{followed.table}"}
    place = replace(followed.source()._place, login={**table.place.login, "dbname": there["pg_db"]})
    connection = connecting.connect(place)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {place.quoted} (id bigint PRIMARY KEY)")
    other = catalog.look(connection, place, (), ())
    replication = connecting.connect_for_replication(place)
    with pytest.raises(DatasetError, match="belongs to another plug-in or database; set another"):
        slots.begin(connection, replication, other)
    connecting.close(replication)
    connecting.close(connection)


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_table_that_went_or_was_replaced_is_noticed(followed: Followed, is_dropped: bool) -> None:
    with opened(followed) as (plain, _, table):
        slots.publish(plain, table.place)
        slots.check_table(plain, table)
        followed.sql("DROP TABLE $t")
        if is_dropped:
            with pytest.raises(DatasetError, match="is not in the database") as caught:
                slots.check_table(plain, table)
            assert caught.value.type == "not_found"
            return
        followed.sql("CREATE TABLE $t (id bigint PRIMARY KEY, note text)")
        with pytest.raises(PositionLostError, match="was replaced by another table"):
            slots.check_table(plain, table)

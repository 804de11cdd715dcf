"""What the database keeps for a dataset: a publication and a replication slot. These block."""

import time
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import catalog, positions
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.connecting import ReplicatedTable, mapped
from caraway_plugins.changes.postgres.positions import PostgresPosition

_SLOT = """
SELECT plugin, database = current_database(), active, to_jsonb(s) ->> 'wal_status',
       confirmed_flush_lsn::text
FROM pg_replication_slots s WHERE slot_name = %s
"""
_PUBLISHED = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate,
       EXISTS (SELECT FROM pg_publication_tables t
               WHERE t.pubname = p.pubname AND t.schemaname = %s AND t.tablename = %s)
FROM pg_publication p WHERE pubname = %s
"""

# The server notices a moment later that whoever had the slot is gone.
_HANDOVER_S = 2.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows as they were at one place of the log; `name` is how transactions look at it."""

    name: str
    at: PostgresPosition


def publish(connection: Any, place: ReplicatedTable) -> None:
    """See to it that changes of the table are published.

    Raises:
        DatasetError: they are not, and this user may not change that.
    """
    _check_log(connection, place)
    is_there = is_published(connection, place)
    if is_there:
        return
    statement = sql.SQL(
        "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)"
    ).format(sql.Identifier(place.publication), sql.Identifier(place.schema, place.table))
    try:
        with mapped(place), connection.cursor() as cursor:
            cursor.execute(statement)
    except DatasetError as exc:
        said = statement.as_string(connection)
        raise DatasetError(exc.type, f"{exc.message}; have an administrator run: {said}") from exc


def is_published(connection: Any, place: ReplicatedTable) -> bool:
    """Whether the publication is there.

    Raises:
        DatasetError: it is, but without all changes of the table.
    """
    with mapped(place), connection.cursor() as cursor:
        cursor.execute(_PUBLISHED, (place.schema, place.table, place.publication))
        found = cursor.fetchone()
    if found is None:
        return False
    tells_all, has_table = found
    if not has_table:
        raise DatasetError(
            "invalid",
            f"the publication '{place.publication}' does not hold {place.title}; run: ALTER "
            f'PUBLICATION "{place.publication}" ADD TABLE "{place.schema}"."{place.table}"',
        )
    if not tells_all:
        raise DatasetError(
            "invalid",
            f"the publication '{place.publication}' leaves changes out; run: ALTER PUBLICATION "
            f"\"{place.publication}\" SET (publish = 'insert, update, delete, truncate')",
        )
    return True


def begin(connection: Any, replication: Any, table: Table) -> Snapshot:
    """Make the slot anew, and a snapshot that lasts until `replication` is used again.

    Raises:
        DatasetError: it cannot be made, or somebody uses the one that is there.
    """
    place = table.place
    history = catalog.system(connection, place)
    with mapped(place):
        if _free(connection, place) is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_drop_replication_slot(%s)", (place.slot,))
        with replication.cursor() as cursor:
            cursor.create_replication_slot(place.slot, output_plugin="pgoutput")
            _, lsn, snapshot, _ = cursor.fetchone()
    generation = f"{history}/{table.oid}/{lsn}"
    at = PostgresPosition(generation, table.shape, positions.lsn(lsn), is_loading=True)
    return Snapshot(snapshot, at)


def check(connection: Any, table: Table, at: PostgresPosition) -> None:
    """Check that the slot holds everything after a position.

    Raises:
        PositionLostError: it does not, so the rows must be read anew.
        DatasetError: somebody else uses the slot, or the columns changed.
    """
    place = table.place
    history = catalog.system(connection, place)
    if not at.generation.startswith(f"{history}/{table.oid}/"):
        raise PositionLostError(f"{place.title} is another one than before; it is loaded anew")
    if at.columns != table.shape:
        raise DatasetError(
            "schema",
            f"{place.title} has other columns than when it was loaded; undo that, or write the "
            "columns that the dataset is to have under its 'columns': then it is loaded anew",
        )
    if not is_published(connection, place):
        raise _lost(place, f"the publication '{place.publication}' is gone")
    found = _free(connection, place)
    if found is None:
        raise _lost(place, f"the replication slot '{place.slot}' is gone")
    wal_status, confirmed = found
    if wal_status == "lost" or confirmed is None:
        raise _lost(place, f"the replication slot '{place.slot}' was dropped behind")
    if positions.lsn(confirmed) > at.lsn:
        raise _lost(place, f"somebody else read from the replication slot '{place.slot}'")


def check_table(connection: Any, table: Table) -> None:
    """Check that the table is the one that is followed, and published.

    Raises:
        PositionLostError: another one has its name now.
        DatasetError: it is gone, or not published.
    """
    place = table.place
    if catalog.look(connection, place, (), None).oid != table.oid:
        raise PositionLostError(f"{place.title} is another one than before; it is loaded anew")
    is_published(connection, place)


def _free(connection: Any, place: ReplicatedTable) -> tuple[str | None, str | None] | None:
    """Wait until nobody uses the slot; return its state and how far it is, None: there is none.

    Raises:
        DatasetError: somebody goes on using it, or it is of another kind.
    """
    deadline = time.monotonic() + _HANDOVER_S
    while True:
        with mapped(place), connection.cursor() as cursor:
            cursor.execute(_SLOT, (place.slot,))
            found = cursor.fetchone()
        if found is None:
            return None
        plugin, is_here, is_active, wal_status, confirmed = found
        if plugin != "pgoutput" or not is_here:
            raise DatasetError(
                "invalid",
                f"the replication slot '{place.slot}' belongs to something else; name another one "
                "in params.pg_replication_slot",
            )
        if not is_active:
            return wal_status, confirmed
        if time.monotonic() > deadline:
            raise DatasetError(
                "unavailable",
                f"the replication slot '{place.slot}' is in use; each dataset needs one of its own "
                "(params.pg_replication_slot)",
            )
        time.sleep(_LOOK_S)


def _check_log(connection: Any, place: ReplicatedTable) -> None:
    with mapped(place), connection.cursor() as cursor:
        cursor.execute("SHOW wal_level")
        (level,) = cursor.fetchone()
    if level != "logical":
        raise DatasetError(
            "invalid",
            f"PostgreSQL has wal_level = {level}; set it to logical, which takes a restart",
        )


def _lost(place: ReplicatedTable, why: str) -> PositionLostError:
    return PositionLostError(f"{place.title}: {why}, so changes are missing; it is loaded anew")

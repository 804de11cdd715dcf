"""Manages the publication and the replication slot of a dataset. These functions block."""

import time
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import catalog, positions
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.connecting import ReplicatedTable, mapped, quoted
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

# The server notices only after a moment that the previous reader of the slot is gone.
_HANDOVER_S = 2.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows at one position of the log; `name` is the exported snapshot for transactions."""

    name: str
    at: PostgresPosition


def publish(connection: Any, place: ReplicatedTable) -> None:
    """Create the publication of the table if it does not exist.

    Raises:
        DatasetError: the publication is incomplete, or the user may not create it.
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
    """Return whether the publication exists.

    Raises:
        DatasetError: it exists, but does not publish all changes of the table.
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
            f"the publication '{place.publication}' does not include {place.title}; run: ALTER "
            f"PUBLICATION {quoted(place.publication)} ADD TABLE {place.quoted}",
        )
    if not tells_all:
        raise DatasetError(
            "invalid",
            f"the publication '{place.publication}' omits some changes; run: ALTER PUBLICATION "
            f"{quoted(place.publication)} SET (publish = 'insert, update, delete, truncate')",
        )
    return True


def begin(connection: Any, replication: Any, table: Table) -> Snapshot:
    """Recreate the slot, and export a snapshot that is valid until `replication` is used again.

    Raises:
        DatasetError: the slot cannot be created, or is in use.
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


def check(connection: object, table: Table, at: PostgresPosition) -> None:
    """Check that the slot still has all changes after a position.

    Raises:
        PositionLostError: changes are missing, so the rows must be read again.
        DatasetError: the slot is in use, or the columns changed.
    """
    place = table.place
    history = catalog.system(connection, place)
    if not at.generation.startswith(f"{history}/{table.oid}/"):
        raise PositionLostError(f"{place.title} was replaced by another table; reloading")
    if at.columns != table.shape:
        raise DatasetError(
            "schema",
            f"{place.title} has different columns than when it was loaded; undo that, or list the "
            "columns of the dataset under its 'columns', which reloads it",
        )
    if not is_published(connection, place):
        raise _lost(place, f"the publication '{place.publication}' no longer exists")
    free = _free(connection, place)
    if free is None:
        raise _lost(place, f"the replication slot '{place.slot}' no longer exists")
    wal_status, confirmed = free
    if wal_status == "lost" or confirmed is None:
        raise _lost(
            place,
            f"the replication slot '{place.slot}' was invalidated because it fell too far behind",
        )
    if positions.lsn(confirmed) > at.lsn:
        raise _lost(place, f"another client read from the replication slot '{place.slot}'")


def check_table(connection: object, table: Table) -> None:
    """Check that the table still exists as loaded, and is published.

    Raises:
        PositionLostError: another table has its name now.
        DatasetError: the table does not exist, or is not published.
    """
    place = table.place
    if catalog.look(connection, place, (), None).oid != table.oid:
        raise PositionLostError(f"{place.title} was replaced by another table; reloading")
    is_published(connection, place)


def _free(connection: Any, place: ReplicatedTable) -> tuple[str | None, str | None] | None:
    """Wait until the slot is free; return its WAL status and position, or None without a slot.

    Raises:
        DatasetError: the slot stays in use, or belongs to another plug-in or database.
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
                f"the replication slot '{place.slot}' belongs to another plug-in or database; set "
                "another name in params.pg_replication_slot",
            )
        if not is_active:
            return wal_status, confirmed
        if time.monotonic() > deadline:
            raise DatasetError(
                "unavailable",
                f"the replication slot '{place.slot}' is in use; each dataset needs its own slot "
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
            f"PostgreSQL has wal_level = {level}; set it to logical and restart PostgreSQL",
        )


def _lost(place: ReplicatedTable, why: str) -> PositionLostError:
    return PositionLostError(f"{place.title}: {why}, so changes are missing; reloading")

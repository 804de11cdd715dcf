"""Looks a table up that is followed: its columns, its key, and whether the log has its changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import database_files
from caraway_plugins.sources.mysql import describing

_COLUMNS = """
SELECT column_name, data_type, column_type, character_set_name, numeric_precision, numeric_scale,
       column_key = 'PRI'
FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND find_in_set('select', privileges)
ORDER BY ordinal_position
"""
_ENGINE = """
SELECT t.table_type, e.transactions FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s
"""
_CASCADES = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
LIMIT 1
"""
_SETTINGS = {
    "log_bin": ("1", "start the server with --log-bin and a --server-id of its own"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = 'ROW', and have clients connect again"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = 'FULL'"),
    "binlog_row_metadata": ("FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
}
"""The right values of settings of the server, and how they are set."""
_KINDS = frozenset(
    "tinyint smallint mediumint int bigint decimal float double char varchar tinytext text "
    "mediumtext longtext binary varbinary tinyblob blob mediumblob longblob date datetime "
    "timestamp year enum".split()
)
_CHARSETS = frozenset({None, "utf8mb4", "utf8mb3", "utf8", "ascii"})
_LENGTH = re.compile(r"binary\((\d+)\)")


@dataclass(frozen=True, slots=True)
class FollowedColumn:
    """A column: its type, its definition in the database, and the length of fixed bytes."""

    field: pa.Field
    written: str
    padded: int = 0


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table whose changes are followed. `login` may have a password, so it is never printed."""

    login: dict[str, str] = field(repr=False)
    relation: tuple[str, str]
    columns: tuple[FollowedColumn, ...]
    key: tuple[str, ...]
    takes_all: bool
    """The dataset declares no columns, so it has all of them."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([each.field for each in self.columns])

    @property
    def title(self) -> str:
        return f"table '{'.'.join(self.relation)}'"


def look(request: ChangeRequest, *, needs_key: bool = True) -> FollowedTable:
    """Look the table of a dataset up, whose rows need a key.

    Raises:
        DatasetError: it cannot be followed; the message says what to change.
    """
    asked = request.as_source()
    schema, name = database_files.relation(asked)
    with describing.opened(asked) as (login, run):
        relation = (login["db"] if schema == "main" else schema, name)
        _check_server(run)
        _check_table(run, relation)
        rows = run(_COLUMNS, *relation)
    if not rows:
        raise DatasetError(
            "not_found",
            f"the server has no table '{'.'.join(relation)}' that the user may read",
        )
    table = _table(request, asked, login, relation, rows)
    if needs_key:
        _check_key(table)
    return table


def _check_server(run: describing.Run) -> None:
    ((version,),) = run("SELECT version()")
    if "mariadb" not in version.lower():
        raise DatasetError(
            "unsupported",
            "changes of MySQL are not followed, only those of MariaDB; use another refresh_mode",
        )
    names = ", ".join(f"@@global.{name}" for name in _SETTINGS)
    (found,) = run(f"SELECT {names}")
    for (name, (right, remedy)), value in zip(_SETTINGS.items(), found, strict=True):
        if str(value).upper() != right:
            raise DatasetError(
                "unsupported",
                f"changes cannot be followed: {name} of the server is {value}; {remedy}",
            )


def _check_table(run: describing.Run, relation: tuple[str, str]) -> None:
    title = f"table '{'.'.join(relation)}'"
    found = run(_ENGINE, *relation)
    if found and (found[0][0] != "BASE TABLE" or found[0][1] != "YES"):
        raise DatasetError(
            "unsupported",
            f"{title} cannot be followed: it is a view, or its engine has no transactions; "
            "follow a table of InnoDB",
        )
    if cascades := run(_CASCADES, *relation):
        raise DatasetError(
            "unsupported",
            f"{title} cannot be followed: its foreign key '{cascades[0][0]}' changes rows, which "
            "the binary log does not have; make it RESTRICT",
        )


def _table(
    request: ChangeRequest,
    asked: SourceRequest,
    login: dict[str, str],
    relation: tuple[str, str],
    rows: Sequence[tuple[Any, ...]],
) -> FollowedTable:
    known = {row[0]: row for row in rows}
    columns = []
    for row, type_ in database_files.chosen(asked, known):
        name, kind, written, charset, digits, scale, _ = row
        if kind not in _KINDS or charset not in _CHARSETS:
            of = f"{kind} in {charset}" if kind in _KINDS else kind
            raise DatasetError(
                "unsupported",
                f"table '{'.'.join(relation)}': changes of column '{name}' ({of}) are not "
                "followed; list the other columns under 'columns'",
            )
        found = describing.column_of(name, kind, written, charset, digits, scale)
        length = _LENGTH.fullmatch(written.lower())
        columns.append(
            FollowedColumn(
                pa.field(name, type_ or found.type), written, int(length[1]) if length else 0
            )
        )
    key = request.primary_key or tuple(row[0] for row in rows if row[6])
    return FollowedTable(login, relation, tuple(columns), tuple(key), not request.declared)


def _check_key(table: FollowedTable) -> None:
    if not table.key or not {*table.schema.names}.issuperset(table.key):
        raise DatasetError(
            "invalid",
            f"{table.title} has no primary key among the columns of the dataset, by which its rows "
            "are told apart; declare 'primary_key' in the acceleration",
        )

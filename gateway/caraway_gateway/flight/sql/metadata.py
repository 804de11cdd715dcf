"""Catalogs, schemas, tables and keys: what drivers ask for to show what there is."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from google.protobuf.message import Message

from caraway_core.errors import QueryError
from caraway_gateway.flight.callers import Caller
from caraway_gateway.flight.sql import column_types, metadata_schemas, sql_info, xdbc_types
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto
from caraway_gateway.flight.sql.running import request_of
from caraway_gateway.flight.statements import Statements
from caraway_gateway.services import Services
from caraway_scheduler.catalog import primary_keys
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState

CATALOG = "caraway"
PUBLIC = "public"
_TYPES = {"BASE TABLE": "TABLE", "VIEW": "VIEW"}
_TABLES = (
    "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables "
    "ORDER BY table_schema, table_name"
)
_SCHEMATA = f"SELECT schema_name FROM information_schema.schemata WHERE catalog_name = '{CATALOG}'"
_MOST_DESCRIBED = 100
"""If a command asks for more tables of source catalogs, none has its columns in the answer."""
_SCHEMAS: dict[type[Message], pa.Schema] = {
    proto.CommandGetCatalogs: metadata_schemas.CATALOGS,
    proto.CommandGetDbSchemas: metadata_schemas.DB_SCHEMAS,
    proto.CommandGetTableTypes: metadata_schemas.TABLE_TYPES,
    proto.CommandGetPrimaryKeys: metadata_schemas.PRIMARY_KEYS,
    proto.CommandGetExportedKeys: metadata_schemas.FOREIGN_KEYS,
    proto.CommandGetImportedKeys: metadata_schemas.FOREIGN_KEYS,
    proto.CommandGetCrossReference: metadata_schemas.FOREIGN_KEYS,
    proto.CommandGetSqlInfo: metadata_schemas.SQL_INFO,
    proto.CommandGetXdbcTypeInfo: metadata_schemas.XDBC_TYPE_INFO,
}


def schema(command: Message) -> pa.Schema | None:
    """Return the columns of the answer to a command; None: it does not ask for metadata."""
    if isinstance(command, proto.CommandGetTables):
        with_schema = command.include_schema
        return metadata_schemas.TABLES_WITH_SCHEMA if with_schema else metadata_schemas.TABLES
    return _SCHEMAS.get(type(command))


class Metadata:
    """Answers commands that ask for metadata, as their caller may see it."""

    def __init__(self, services: Services, statements: Statements) -> None:
        self._services = services
        self._statements = statements

    async def rows(self, caller: Caller, command: Message) -> pa.Table:
        """Return the answer to a command of which `schema` knows the columns."""
        match command:
            case proto.CommandGetCatalogs():
                names = sorted((CATALOG, *self._source_catalogs))
                return _table(metadata_schemas.CATALOGS, [{"catalog_name": n} for n in names])
            case proto.CommandGetDbSchemas():
                return await self._db_schemas(caller, command)
            case proto.CommandGetTables():
                return await self._tables(caller, command)
            case proto.CommandGetTableTypes():
                types = [{"table_type": name} for name in sorted(_TYPES.values())]
                return _table(metadata_schemas.TABLE_TYPES, types)
            case proto.CommandGetPrimaryKeys():
                return _table(metadata_schemas.PRIMARY_KEYS, self._primary_keys(command))
            case proto.CommandGetSqlInfo():
                return sql_info.table(command.info)
            case proto.CommandGetXdbcTypeInfo():
                known = command.HasField("data_type")
                return xdbc_types.table(command.data_type if known else None)
            case _:
                # No dataset declares a foreign key.
                return _table(metadata_schemas.FOREIGN_KEYS, [])

    async def _db_schemas(self, caller: Caller, command: object) -> pa.Table:
        found = await self._statements.collected(request_of(caller, _SCHEMATA))
        names = {*found.column("schema_name").to_pylist(), "information_schema"}
        wanted = _filter(command, "db_schema_filter_pattern")
        rows = [
            {"catalog_name": CATALOG, "db_schema_name": name}
            for name in sorted(names)
            if _is_here(command) and wanted(name)
        ]
        for name, state in sorted(self._source_catalogs.items()):
            schemas = {each.schema for each in state.listed.values()}
            if _is_asked(command, name):
                rows += [
                    {"catalog_name": name, "db_schema_name": each}
                    for each in sorted(schemas)
                    if wanted(each)
                ]
        return _table(metadata_schemas.DB_SCHEMAS, rows)

    async def _tables(self, caller: Caller, command: Any) -> pa.Table:
        found = await self._statements.collected(request_of(caller, _TABLES))
        in_schema = _filter(command, "db_schema_filter_pattern")
        named = _filter(command, "table_name_filter_pattern")
        types = {_TYPES.get(each, each) for each in command.table_types}
        rows: list[dict[str, object]] = [
            _row(CATALOG, each["table_schema"], each["table_name"], each["table_type"])
            for each in found.to_pylist()
            if _is_here(command) and each["table_catalog"] == CATALOG
        ]
        own = len(rows)
        for name, state in sorted(self._source_catalogs.items()):
            if _is_asked(command, name):
                rows += [_row(name, each.schema, each.name) for each in state.listed.values()]
        rows, others = (
            [
                each
                for each in some
                if (not types or each["table_type"] in types)
                and in_schema(str(each["db_schema_name"]))
                and named(str(each["table_name"]))
            ]
            for some in (rows[:own], rows[own:])
        )
        if command.include_schema:
            described = [*rows, *others] if len(others) <= _MOST_DESCRIBED else rows
            for each in others:
                each["table_schema"] = pa.schema([]).serialize().to_pybytes()
            for each in described:
                columns = await self._columns(caller, each)
                each["table_schema"] = columns.serialize().to_pybytes()
        return _table(schema(command), [*rows, *others])

    async def _columns(self, caller: Caller, row: Mapping[str, object]) -> pa.Schema:
        parts = (str(row[each]) for each in ("catalog_name", "db_schema_name", "table_name"))
        sql = f"SELECT * FROM {'.'.join(map(_quoted, parts))} LIMIT 0"
        # One that has gone meanwhile, or cannot be read now, is listed all the same.
        with suppress(QueryError):
            found = await self._statements.collected(request_of(caller, sql))
            return pa.schema([column_types.described(each) for each in found.schema])
        return pa.schema([])

    @property
    def _source_catalogs(self) -> Mapping[str, SourceCatalogState]:
        return self._services.catalog.source_catalogs.states

    def _primary_keys(self, command: Any) -> list[dict[str, object]]:
        schema_name = command.db_schema if command.HasField("db_schema") else PUBLIC
        if not _is_here(command):
            return []
        return [
            {
                "catalog_name": CATALOG,
                "db_schema_name": schema_name,
                "table_name": command.table,
                "column_name": column.column_name,
                "key_sequence": column.ordinal_position,
                "key_name": None,
            }
            for column in primary_keys.columns(self._services.catalog.datasets)
            if (column.table_schema, column.table_name) == (schema_name, command.table)
        ]


def pattern(text: str) -> Callable[[str], bool]:
    """Return the test of a pattern, in which % stands for any text, _ for a character."""
    pieces = re.findall(r"\\.|.", text, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    parts = [
        re.escape(piece[1:] if len(piece) == 2 else piece) if piece not in wild else wild[piece]
        for piece in pieces
    ]
    matches = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda name: matches(name) is not None


def _filter(command: Any, field: str) -> Callable[[str], bool]:
    if not command.HasField(field):
        return lambda _name: True
    return pattern(getattr(command, field))


def _is_here(command: object) -> bool:
    """Return whether a command asks for the runtime's own catalog."""
    return _is_asked(command, CATALOG)


def _is_asked(command: Any, catalog: str) -> bool:
    return not command.HasField("catalog") or command.catalog == catalog


def _row(catalog: str, schema_name: str, name: str, kind: str = "BASE TABLE") -> dict[str, object]:
    return {
        "catalog_name": catalog,
        "db_schema_name": schema_name,
        "table_name": name,
        "table_type": _TYPES.get(kind, kind),
    }


def _table(columns: pa.Schema | None, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

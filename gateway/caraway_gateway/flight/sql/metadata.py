"""Catalogs, schemas, tables and keys: what drivers ask for to show what there is."""

import re
from collections.abc import Callable, Sequence
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

CATALOG = "caraway"
PUBLIC = "public"
_TYPES = {"BASE TABLE": "TABLE", "VIEW": "VIEW"}
_TABLES = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables "
    "ORDER BY table_schema, table_name"
)
_SCHEMATA = "SELECT schema_name FROM information_schema.schemata"
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
                return _table(metadata_schemas.CATALOGS, [{"catalog_name": CATALOG}])
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

    async def _db_schemas(self, caller: Caller, command: Any) -> pa.Table:
        found = await self._statements.collected(request_of(caller, _SCHEMATA))
        names = {*found.column("schema_name").to_pylist(), "information_schema"}
        wanted = _filter(command, "db_schema_filter_pattern")
        rows = [
            {"catalog_name": CATALOG, "db_schema_name": name}
            for name in sorted(names)
            if _is_here(command) and wanted(name)
        ]
        return _table(metadata_schemas.DB_SCHEMAS, rows)

    async def _tables(self, caller: Caller, command: Any) -> pa.Table:
        found = await self._statements.collected(request_of(caller, _TABLES))
        in_schema = _filter(command, "db_schema_filter_pattern")
        named = _filter(command, "table_name_filter_pattern")
        types = {_TYPES.get(each, each) for each in command.table_types}
        rows = []
        for each in found.to_pylist():
            kind = _TYPES.get(each["table_type"], each["table_type"])
            if not _is_here(command) or (types and kind not in types):
                continue
            if not in_schema(each["table_schema"]) or not named(each["table_name"]):
                continue
            row: dict[str, object] = {
                "catalog_name": CATALOG,
                "db_schema_name": each["table_schema"],
                "table_name": each["table_name"],
                "table_type": kind,
            }
            if command.include_schema:
                columns = await self._columns(caller, each["table_schema"], each["table_name"])
                row["table_schema"] = columns.serialize().to_pybytes()
            rows.append(row)
        return _table(schema(command), rows)

    async def _columns(self, caller: Caller, schema_name: str, name: str) -> pa.Schema:
        sql = f"SELECT * FROM {_quoted(schema_name)}.{_quoted(name)} LIMIT 0"
        # One that has gone meanwhile, or cannot be read now, is listed all the same.
        with suppress(QueryError):
            found = await self._statements.collected(request_of(caller, sql))
            return pa.schema([column_types.described(each) for each in found.schema])
        return pa.schema([])

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


def _is_here(command: Any) -> bool:
    """Return whether a command names the one catalog that exists."""
    return not command.HasField("catalog") or command.catalog == CATALOG


def _table(columns: pa.Schema | None, rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

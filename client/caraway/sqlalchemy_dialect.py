"""The SQLAlchemy dialect, over Flight SQL. SQLAlchemy finds it by the URL `caraway://`.

engine = sqlalchemy.create_engine("caraway://:KEY@data.example.com:443")

Connections are those of `adbc_driver_flightsql`. Every statement is committed by itself.
"""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlalchemy import text, types
from sqlalchemy.engine import URL, Connection, default
from sqlalchemy.engine.reflection import cache
from sqlalchemy.exc import NoSuchTableError

from caraway import sqlalchemy_types
from caraway.errors import InvalidEndpointError
from caraway.requests import addresses
from caraway_core.sqltext import writing

_TABLES = (
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema = :schema AND table_type = :kind ORDER BY table_name"
)
_HAS_TABLE = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = :schema AND table_name = :name"
)
_KEY = (
    "SELECT column_name FROM runtime.primary_keys "
    "WHERE table_schema = :schema AND table_name = :name ORDER BY ordinal_position"
)
_DESCRIPTIONS = (
    "SELECT column_name, description FROM runtime.descriptions "
    "WHERE table_schema = :schema AND table_name = :name"
)
_SCHEMAS = "SELECT DISTINCT table_schema FROM information_schema.tables ORDER BY table_schema"
_HEADER = "adbc.flight.sql.authorization_header"
_ROOTS = "adbc.flight.sql.client_option.tls_root_certs"
_SCHEMES = {None: "", "true": "grpc+tls://", "false": "grpc://"}
_CALL_HEADER = "adbc.flight.sql.rpc.call_header."


class CarawayExecution(default.DefaultExecutionContext):
    """The execution of one statement, which may be several INSERTs of a list of rows."""

    _rows: int | None = None

    @property
    def changes_rows(self) -> bool:
        """True if the statement is an INSERT, UPDATE or DELETE."""
        if self.is_text:
            return writing.begins_with_write(self.unicode_statement)
        return bool(self.isinsert or self.isupdate or self.isdelete)

    @property
    def rowcount(self) -> int:
        """The number of rows that were written; -1 for statements that read."""
        return -1 if self._rows is None else self._rows

    def add_rows(self, count: int) -> None:
        """Count the rows that one INSERT wrote."""
        self._rows = (self._rows or 0) + max(0, count)


class CarawayDialect(default.DefaultDialect):
    """Connects, counts written rows, and describes tables."""

    name = "caraway"
    driver = "adbc"
    default_paramstyle = "qmark"
    default_schema_name = "public"
    execution_ctx_cls = CarawayExecution
    colspecs = {types.LargeBinary: sqlalchemy_types.Bytes}  # noqa: RUF012 # as in the base class
    type_compiler_cls = sqlalchemy_types.CarawayTypeCompiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_default_metavalue = False
    supports_sequences = False
    supports_alter = False
    supports_comments = False
    supports_multivalues_insert = True
    postfetch_lastrowid = False
    # Rows given in a list go as one statement per page: each statement is a commit.
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True
    insertmanyvalues_page_size = 1000

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the DB-API module."""
        from adbc_driver_flightsql import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments of `adbc_driver_flightsql.dbapi.connect`.

        A URL without a host means CARAWAY_FLIGHT_URL, else a runtime on this machine. What the
        URL leaves out comes from the same variables as for `caraway.Client`.
        """
        query = {name: _last(given) for name, given in url.query.items()}
        address = _address(url, query.pop("tls", None))
        key = url.password or os.environ.get("CARAWAY_API_KEY", "")
        roots = query.pop("tls_root_cert", None) or os.environ.get("CARAWAY_TLS_ROOT_CERT")
        options = {name: given for name, given in query.items() if not name.startswith("header.")}
        for name, given in query.items():
            if name.startswith("header."):
                options[_CALL_HEADER + name.removeprefix("header.").lower()] = given
        if key:
            options[_HEADER] = f"Bearer {key}"
        if roots and address.is_secure:
            with open(roots, encoding="ascii") as file:
                options[_ROOTS] = file.read()
        # There are no transactions: the driver would warn that it cannot begin one.
        return [address.location], {"db_kwargs": options, "autocommit": True}

    def initialize(self, connection: Connection) -> None:
        """Keep the dialect as it is: what it may depend on is the same for all servers."""

    # Any: what is below the connections of the pool is the driver's own.
    def do_execute(
        self, cursor: Any, statement: str, parameters: object, context: Any = None
    ) -> None:
        """Execute a statement. One that writes has its rows as `rowcount`."""
        if context is not None and context.changes_rows:
            # The driver counts rows only here, and None is one execution without parameters.
            cursor.executemany(statement, [parameters] if parameters else None)
            context.add_rows(cursor.rowcount)
        else:
            cursor.execute(statement, parameters)

    def do_executemany(
        self, cursor: Any, statement: str, parameters: object, context: Any = None
    ) -> None:
        """Execute an UPDATE or DELETE once for each set of parameters."""
        cursor.executemany(statement, parameters)
        if context is not None:
            context.add_rows(cursor.rowcount)

    def do_execute_no_params(self, cursor: object, statement: str, context: object = None) -> None:
        """Execute a statement, in which nothing is a parameter."""
        self.do_execute(cursor, statement, None, context)

    def do_commit(self, dbapi_connection: object) -> None:
        """Do nothing: each statement was committed when it ended."""

    def do_rollback(self, dbapi_connection: object) -> None:
        """Do nothing: each statement was committed when it ended."""

    def get_isolation_level_values(self, dbapi_connection: object) -> Sequence[Any]:
        """Return the one level that there is."""
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_connection: object) -> Any:
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: object) -> Any:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: object, level: object) -> None:
        """Do nothing: SQLAlchemy has checked that the level is the one that there is."""

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> bool:
        """True if there is a table or a view."""
        names = {"schema": self._schema(schema), "name": table_name}
        return connection.execute(text(_HAS_TABLE), names).first() is not None

    @cache
    def get_schema_names(self, connection: Connection, **kw: object) -> list[str]:
        return list(connection.execute(text(_SCHEMAS)).scalars())

    @cache
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: object
    ) -> list[str]:
        return self._tables(connection, schema, "BASE TABLE")

    @cache
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: object
    ) -> list[str]:
        return self._tables(connection, schema, "VIEW")

    # Any: SQLAlchemy's own types of reflected columns name private keys.
    @cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        """Describe the columns of a table or a view by their Arrow types.

        Raises:
            NoSuchTableError: there is none.
        """
        if not self.has_table(connection, table_name, schema):
            raise NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        quote = self.identifier_preparer.quote_identifier
        full = f"{quote(self._schema(schema))}.{quote(table_name)}"
        schema_read = _columns(connection, f"SELECT * FROM {full} LIMIT 0")
        described = self._descriptions(connection, table_name, schema)
        return sqlalchemy_types.columns_of(schema_read, described)

    @cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        names = {"schema": self._schema(schema), "name": table_name}
        columns = list(connection.execute(text(_KEY), names).scalars())
        return {"constrained_columns": columns, "name": None}

    @cache
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        """Return the description of a dataset or a view in the manifest.

        Raises:
            NoSuchTableError: there is none.
        """
        told = self._descriptions(connection, table_name, schema).get(None)
        if told is None and not self.has_table(connection, table_name, schema):
            raise NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        return {"text": told}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        """Return none: no dataset declares one. Likewise the methods below."""
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        return []

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        return []

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> Any:
        return []

    def _tables(self, connection: Connection, schema: str | None, kind: str) -> list[str]:
        names = {"schema": self._schema(schema), "kind": kind}
        return list(connection.execute(text(_TABLES), names).scalars())

    def _descriptions(
        self, connection: Connection, table: str, schema: str | None
    ) -> dict[str | None, str]:
        """Return the descriptions by column; that of the table has no column."""
        names = {"schema": self._schema(schema), "name": table}
        found = connection.execute(text(_DESCRIPTIONS), names)
        return {row.column_name: row.description for row in found}

    def _schema(self, schema: str | None) -> str:
        return schema or self.default_schema_name


def _columns(connection: Connection, sql: str) -> pa.Schema:
    # The cursor of the driver knows Arrow types; the results of SQLAlchemy do not.
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table().schema


def _address(url: URL, tls: str | None) -> addresses.FlightAddress:
    if not url.host:
        given = os.environ.get(addresses.FLIGHT_VARIABLE) or addresses.DEFAULT_FLIGHT_URL
        return addresses.parse_flight_url(given)
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = f":{url.port}" if url.port else ""
    scheme = _SCHEMES.get(tls)
    if scheme is None:
        raise InvalidEndpointError(f"'{tls}' is not a valid value of tls; use true or false")
    return addresses.parse_flight_url(f"{scheme}{host}{port}")


def _last(given: str | tuple[str, ...]) -> str:
    return given[-1] if isinstance(given, tuple) else given

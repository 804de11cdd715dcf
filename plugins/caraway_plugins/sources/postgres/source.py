"""Datasets that are PostgreSQL tables or views."""

import importlib.util
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from psycopg2.extensions import parse_dsn

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteTable, TableSpec
from caraway_plugins.changes.postgres import connecting
from caraway_plugins.changes.postgres.table import PostgresTable
from caraway_plugins.sources.postgres import catalog

_DRIVER = "adbc_driver_postgresql"
"""Only the engine imports it; the source checks that it is installed."""
_OPTIONS = (
    "-c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres -c bytea_output=hex "
    "-c extra_float_digits=1 -c standard_conforming_strings=on -c statement_timeout=0 "
    "-c default_transaction_read_only=on"
)


class PostgresSource:
    """A table that is queried in the database, or a replicated table without rows of its own."""

    capabilities = SourceCapabilities(
        projection=True, filters=True, limit=True, splits=True, statements=True, changes=True
    )

    def resolve(self, request: SourceRequest) -> TableSpec:
        if request.is_followed:
            return PostgresTable().resolve(request)
        if importlib.util.find_spec(_DRIVER) is None:
            raise DatasetError(
                "unsupported",
                f"reading PostgreSQL tables needs the package '{_DRIVER}', which is not "
                "installed; install it with: pip install 'caraway[postgres]'",
            )
        place, table = _look(request)
        schema = pa.schema([pa.field(each.name, each.type) for each in table.columns])
        return RemoteTable(
            schema,
            "postgres",
            (place.schema, place.table),
            table.columns,
            login_of(place.login),
            table.size_bytes,
            table.splits,
            table.row_count,
        )

    def fingerprint(self, request: SourceRequest) -> str | None:
        if request.is_followed:
            return PostgresTable().fingerprint(request)
        return _look(request)[1].shape


def _look(request: SourceRequest) -> tuple[connecting.ReplicatedTable, catalog.FoundTable]:
    place = connecting.place_of(
        ChangeRequest(request.name, request.connector, request.path, request.params)
    )
    connection = connecting.connect(place)
    try:
        return place, catalog.look(connection, place, request.declared)
    finally:
        connecting.close(connection)


def login_of(login: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the libpq parameters of a login, in the form that is sent to executors."""
    given = {name: value for name, value in login.items() if name != "dsn"}
    parsed = parse_dsn(login["dsn"]) if "dsn" in login else {}
    return {name: str(value) for name, value in {**parsed, **given, "options": _OPTIONS}.items()}

"""Datasets that are tables of any database with a driver of ADBC: `from: adbc:TABLE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import described_tables, params
from caraway_plugins.sources.adbc import declared
from caraway_plugins.sources.driver_catalogs import DriverTable

_PARAMS = ("entrypoint", "uri", "username", "password", "catalog", "schema")
_POSTGRES_TYPE = b"POSTGRESQL:type"
_COMPARABLE = frozenset(
    "bool int2 int4 int8 float4 float8 text varchar bpchar date timestamp timestamptz".split()
)
"""Types of PostgreSQL that compare with literals of their Arrow type."""


class AdbcSource:
    """A table or view of a database that a driver of ADBC reads."""

    declaration = declared.ADBC
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)
    package = "adbc-driver-manager"
    of_login = "params.adbc_username, adbc_password and adbc_uri"
    of_server = "params.adbc_uri"
    """The params that errors name."""

    def resolve(self, request: SourceRequest) -> RemoteTable:
        login, columns = self._look(request)
        made = described_tables.table(request, self._reader(login), columns, login)
        return replace(made, relation=self._relation(request))

    def fingerprint(self, request: SourceRequest) -> str | None:
        return described_tables.fingerprint(self._look(request)[1])

    def _reader(self, login: Mapping[str, str]) -> str:
        """Return the name of the reader, with the dialect of the database."""
        return f"adbc/{login['dialect']}"

    def _relation(self, request: SourceRequest) -> tuple[str, ...]:
        """Return the parts of the name of the table."""
        return described_tables.relation(request)

    def login(self, request: SourceRequest) -> dict[str, str]:
        """Return the driver, what it connects with, and the dialect.

        Raises:
            DatasetError: a param is missing, unknown or wrong.
        """
        return _login(request)

    def catalogs(
        self, request: SourceRequest, login: dict[str, str]
    ) -> list[tuple[str, list[DriverTable]]]:
        """Return the catalogs of the database with their tables.

        Raises:
            DatasetError: they cannot be listed.
        """
        self._check_installed(request)
        from caraway_plugins.sources.adbc import connecting

        try:
            connection = connecting.opened(login)
            try:
                return list(connection.catalogs())
            finally:
                connection.close()
        except connecting.FAILURES as exc:
            raise self._not_read(request, login, exc) from exc

    def _look(self, request: SourceRequest) -> tuple[dict[str, str], list[RemoteColumn]]:
        self._check_installed(request)
        login = self.login(request)
        return login, [_column(each) for each in self._described(request, login)]

    def _check_installed(self, request: SourceRequest) -> None:
        if find_spec(self.package.replace("-", "_")) is None:
            raise DatasetError(
                "unsupported",
                f"dataset '{request.name}': tables over drivers of ADBC need the package "
                f"'{self.package}', which is not installed; install it with: pip install "
                f"'caraway[{request.connector}]'",
            )

    def _described(self, request: SourceRequest, login: dict[str, str]) -> pa.Schema:
        from caraway_plugins.sources.adbc import connecting

        relation = self._relation(request)
        try:
            connection = connecting.opened(login)
        except connecting.FAILURES as exc:
            raise self._not_read(request, login, exc) from exc
        try:
            # The driver of SQLite takes types from rows, of which an empty answer has none.
            if "sqlite" in Path(login["driver"]).name:
                return connection.declared(relation)
            quote = registry.database_reader(self._reader(login)).dialect.quote
            names = (quote + each.replace(quote, quote * 2) + quote for each in relation)
            with connection.begin(f"SELECT * FROM {'.'.join(names)} WHERE 1 = 0") as reader:
                return reader.schema
        except connecting.FAILURES as exc:
            raise self._not_read(request, login, exc) from exc
        finally:
            connection.close()

    def _not_read(
        self, request: SourceRequest, login: dict[str, str], exc: Exception
    ) -> DatasetError:
        from caraway_plugins.sources.adbc import connecting

        start, said = f"dataset '{request.name}':", connecting.message(exc, login)
        if "Could not load" in str(exc):
            return DatasetError(
                "unsupported",
                f"{start} there is no driver '{login['driver']}'; install its package, such as "
                "adbc-driver-postgresql, or name the file of a driver in params.adbc_driver_path",
            )
        if connecting.is_refused(exc):
            return DatasetError(
                "auth",
                f"{start} the database refuses the login, or its rights; check {self.of_login}",
            )
        table = f"table '{request.path}'" if request.path else "list of tables"
        if described_tables.is_absent(str(exc)):
            return DatasetError(
                "not_found", f"{start} the database has no {table}, or is not there"
            )
        if connecting.is_away(exc):
            return DatasetError(
                "unavailable",
                f"{start} the database cannot be reached; check {self.of_server} and the network",
            )
        return DatasetError("invalid", f"{start} {table} cannot be read: {said}")


def _column(field: pa.Field) -> RemoteColumn:
    kind = (field.metadata or {}).get(_POSTGRES_TYPE, b"").decode()
    is_comparable = not isinstance(field.type, pa.BaseExtensionType)
    if kind:
        is_comparable = kind in _COMPARABLE
    return RemoteColumn(field.name, described_tables.column_type(field.type), is_comparable)


def _login(request: SourceRequest) -> dict[str, str]:
    """Return the driver, what it connects with, and the dialect.

    Raises:
        DatasetError: a param is missing, unknown or wrong.
    """
    from caraway_plugins.sources.adbc.connecting import OPTION

    given = params.checked(request.connector, request.params)
    driver = given.text("adbc_driver_path", "adbc_driver")
    if driver is None:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': params.adbc_driver is missing; name a driver, such as "
            "postgresql, or the path of its file",
        )
    dialect = described_tables.dialect(request, "adbc_dialect")
    login = {"driver": driver, "dialect": dialect}
    for name in _PARAMS:
        if (text := given.text(f"adbc_{name}")) is not None:
            login[name] = text
    for name, value in _options(request, given.text("adbc_driver_options") or ""):
        login[OPTION + name] = value
    return login


def _options(request: SourceRequest, written: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a driver; names with a dot begin with `adbc.`."""
    for each in filter(None, map(str.strip, written.split(";"))):
        name, sign, value = (part.strip() for part in each.partition("="))
        if not name or not sign:
            raise DatasetError(
                "invalid",
                f"dataset '{request.name}': params.adbc_driver_options is not a list such as "
                "'name=value;other=value'",
            )
        is_long = "." not in name or name.startswith("adbc.")
        yield (name if is_long else f"adbc.{name}"), value

"""Datasets that are tables of any database with a driver of ADBC: `from: adbc:TABLE`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import described_tables, foreign_dialects, params
from caraway_plugins.sources.adbc import declared

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

    def resolve(self, request: SourceRequest) -> RemoteTable:
        login, columns = _look(request)
        return described_tables.table(request, f"adbc/{login['dialect']}", columns, login)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return described_tables.fingerprint(_look(request)[1])


def _look(request: SourceRequest) -> tuple[dict[str, str], list[RemoteColumn]]:
    if find_spec("adbc_driver_manager") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': drivers of ADBC need the package 'adbc-driver-manager', "
            "which is not installed; install it with: pip install 'caraway[adbc]'",
        )
    login, relation = _login(request), described_tables.relation(request)
    return login, [_column(each) for each in _described(request, login, relation)]


def _described(
    request: SourceRequest, login: dict[str, str], relation: tuple[str, ...]
) -> pa.Schema:
    from caraway_plugins.sources.adbc import connecting

    try:
        connection = connecting.opened(login)
    except connecting.FAILURES as exc:
        raise _not_opened(request, login, exc) from exc
    try:
        if login["dialect"] == "sqlite":  # Its driver takes the types from the rows of an answer.
            return connection.declared(relation)
        quote = foreign_dialects.DIALECTS[login["dialect"]].quote
        names = (quote + each.replace(quote, quote * 2) + quote for each in relation)
        with connection.begin(f"SELECT * FROM {'.'.join(names)} WHERE 1 = 0") as reader:
            return reader.schema
    except connecting.FAILURES as exc:
        raise _not_read(request, login, exc) from exc
    finally:
        connection.close()


def _column(field: pa.Field) -> RemoteColumn:
    kind = (field.metadata or {}).get(_POSTGRES_TYPE, b"").decode()
    is_comparable = not isinstance(field.type, pa.BaseExtensionType)
    if kind:
        is_comparable = kind in _COMPARABLE
    return RemoteColumn(field.name, described_tables.column_type(field.type), is_comparable)


def _not_opened(request: SourceRequest, login: dict[str, str], exc: Exception) -> DatasetError:
    from caraway_plugins.sources.adbc import connecting

    name = request.name
    if "Could not load" in str(exc):
        return DatasetError(
            "unsupported",
            f"dataset '{name}': there is no driver '{login['driver']}'; install its package, such "
            "as adbc-driver-postgresql, or name the file of a driver in params.adbc_driver_path",
        )
    if connecting.is_refused(exc) or connecting.is_away(exc):
        return _not_read(request, login, exc)
    said = connecting.message(exc, login)
    return DatasetError("invalid", f"dataset '{name}': the driver does not connect: {said}")


def _not_read(request: SourceRequest, login: dict[str, str], exc: Exception) -> DatasetError:
    from caraway_plugins.sources.adbc import connecting

    said = connecting.message(exc, login)
    if described_tables.is_absent(said) and not connecting.is_refused(exc):
        return DatasetError(
            "not_found", f"dataset '{request.name}': the database has no table '{request.path}'"
        )
    if connecting.is_refused(exc):
        return DatasetError(
            "auth",
            f"dataset '{request.name}': the database refuses the login, or its rights; check "
            "params.adbc_username, adbc_password and adbc_uri",
        )
    if connecting.is_away(exc):
        return DatasetError(
            "unavailable",
            f"dataset '{request.name}': the database cannot be reached; check params.adbc_uri and "
            "the network",
        )
    message = f"dataset '{request.name}': table '{request.path}' cannot be read: {said}"
    return DatasetError("invalid", message)


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

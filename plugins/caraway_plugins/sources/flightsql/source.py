"""Datasets that are tables behind Flight SQL: `from: flightsql:TABLE`, `from: caraway:TABLE`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import described_tables, params
from caraway_plugins.sources.described_tables import quoted
from caraway_plugins.sources.flightsql import declared

if TYPE_CHECKING:
    from caraway_plugins.sources.flightsql.connecting import FlightSqlConnection

_SCHEMES = {
    "": "grpc+tcp", "grpc": "grpc+tcp", "grpc+tcp": "grpc+tcp", "http": "grpc+tcp",
    "grpc+tls": "grpc+tls", "https": "grpc+tls",
}  # fmt: skip
_ADDRESS = re.compile(r"(?:([a-z+]+)://)?([^/@\s]+:\d+)/?")
_TIMEOUT_S = 30.0


class FlightSqlSource:
    """A table of a Flight SQL server."""

    declaration = declared.FLIGHTSQL
    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, statements=True)

    def resolve(self, request: SourceRequest) -> RemoteTable:
        login, columns = _look(request)
        return described_tables.table(request, request.connector, columns, login)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return described_tables.fingerprint(_look(request)[1])


class CarawaySource(FlightSqlSource):
    """A table of another runtime of Caraway."""

    declaration = declared.CARAWAY


def _look(request: SourceRequest) -> tuple[dict[str, str], list[RemoteColumn]]:
    _check_installed(request)
    login = login_of(request)
    table = ".".join(map(quoted, described_tables.relation(request)))
    what = f"the server does not read table '{request.path}'"
    with opened(request, login, what) as connection:
        reader = connection.begin(f"SELECT * FROM {table} WHERE 1 = 0")
        schema = reader.schema
        reader.close()
    types = [(each.name, described_tables.column_type(each.type)) for each in schema]
    return login, [RemoteColumn(name, type_, is_comparable=True) for name, type_ in types]


def _check_installed(request: SourceRequest) -> None:
    if find_spec("adbc_driver_flightsql") is None:
        raise DatasetError(
            "unsupported",
            f"dataset '{request.name}': tables of Flight SQL servers need the package "
            "'adbc-driver-flightsql', which is not installed; install it with: pip install "
            "'caraway[flightsql]'",
        )


@contextmanager
def opened(
    request: SourceRequest, login: Mapping[str, str], what: str
) -> Iterator[FlightSqlConnection]:
    """Connect to a server, to ask for what it has; `what` is said of other errors of the server.

    Raises:
        DatasetError: it cannot be reached, or refuses the login or the question.
    """
    _check_installed(request)
    from caraway_plugins.sources.adbc import connecting
    from caraway_plugins.sources.flightsql.connecting import FlightSqlConnection

    given = params.checked(request.connector, request.params)
    timeout_s = given.seconds("client_timeout", _TIMEOUT_S)
    try:
        connection = FlightSqlConnection(login, timeout_s)
        try:
            yield connection
        finally:
            connection.close()
    except connecting.FAILURES as exc:
        raise _not_read(request, login, exc, what) from exc


def _not_read(
    request: SourceRequest, login: Mapping[str, str], exc: Exception, what: str
) -> DatasetError:
    from caraway_plugins.sources.adbc import connecting

    kind, name = request.connector, request.name
    if connecting.is_refused(exc):
        param = "api_key" if kind == "caraway" else "username and password"
        return DatasetError(
            "auth", f"dataset '{name}': the server refuses the login; check the {param}"
        )
    if connecting.is_away(exc):
        return DatasetError(
            "unavailable",
            f"dataset '{name}': the server cannot be reached; check params.{kind}_endpoint, its "
            "certificate and the network",
        )
    said = connecting.message(exc, login)
    message = f"dataset '{name}': {what}: {said}"
    return DatasetError("not_found" if described_tables.is_absent(said) else "invalid", message)


def login_of(request: SourceRequest) -> dict[str, str]:
    """Return the login of a dataset.

    Raises:
        DatasetError: a param is missing, unknown or wrong.
    """
    kind, given = request.connector, params.checked(request.connector, request.params)
    written = given.text(f"{kind}_endpoint")
    address = _ADDRESS.fullmatch((written or "").strip())
    if address is None or (address[1] or "") not in _SCHEMES:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': params.{kind}_endpoint is not the address of a server; "
            "write grpc://host:50051, or grpc+tls://host:443 for TLS",
        )
    login = {"uri": f"{_SCHEMES[address[1] or '']}://{address[2]}"}
    for name in ("username", "password", "api_key"):
        if text := given.text(f"{kind}_{name}"):
            login[name] = text
    if token := given.text(f"{kind}_token"):
        login["authorization"] = f"Bearer {token}"
    if file := given.text(f"{kind}_tls_root_certs"):
        login["roots"] = _certificates(request, file)
    return login


def _certificates(request: SourceRequest, file: str) -> str:
    try:
        return (Path(request.base_dir) / file).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': the file of params.{request.connector}_tls_root_certs "
            "cannot be read",
        ) from exc

"""Catalogs of Iceberg in a Hive metastore, whose databases are namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg.hive_wire import (
    HiveConnection,
    Struct,
    UnknownMethodError,
    WireError,
)
from caraway_plugins.sources.iceberg.pointers import ListedPointer, PointerPath

_ENDPOINT = "iceberg_hive_endpoint"
_PORT = 9_083
_TIMEOUT_S = 30.0
_TOGETHER = 200
_NAME, _PARAMETERS = 1, 9
"""Fields of a table."""
_LOCATION = "metadata_location"
_ABSENT: Mapping[str, int] = {
    "get_database": 1,
    "get_table_req": 2,
    "get_table": 2,
    "get_table_objects_by_name_req": 3,
    "get_table_objects_by_name": 3,
}
"""The exceptions of methods that say that something does not exist."""


class HiveCatalog:
    """The tables of a metastore that are of Iceberg; it has others, too."""

    def tables(self, request: SourceRequest, path: PointerPath) -> Iterator[ListedPointer]:
        database = ".".join(path.namespace)
        title = f"namespace '{database}'" if database else "the catalog"
        with _connected(request, title) as metastore:
            if database:
                metastore.asked("get_database", database)
            for each in [database] if database else metastore.asked("get_all_databases"):
                names = metastore.asked("get_all_tables", each)
                for start in range(0, len(names), _TOGETHER):
                    for table in metastore.tables(each, names[start : start + _TOGETHER]):
                        if location := _location(table):
                            yield ListedPointer((each,), table[_NAME], location)

    def location(self, request: SourceRequest, path: PointerPath) -> str:
        with _connected(request, path.title) as metastore:
            table = metastore.table(".".join(path.namespace), path.table)
        location = _location(table)
        if location is None:
            raise DatasetError("invalid", f"{path.title} of Hive is not an Iceberg table")
        return location


class _Metastore:
    """Asks a metastore. Some versions have only the newer methods, some only the older ones."""

    def __init__(self, connection: HiveConnection, title: str) -> None:
        self._connection, self._title = connection, title

    def asked(self, method: str, *arguments: object) -> Any:
        found = self._connection.call(method, *arguments)
        if 0 in found:
            return found[0]
        if _ABSENT.get(method) in found:
            raise DatasetError(
                "not_found", f"{self._title} does not exist; check its name and {_ENDPOINT}"
            )
        raise DatasetError(
            "unavailable", f"{self._title} cannot be read: the metastore failed; check its log"
        )

    def tables(self, database: str, names: Sequence[str]) -> Sequence[Struct]:
        asked = list(names)
        method = "get_table_objects_by_name"
        try:
            found: Sequence[Struct] = self.asked(f"{method}_req", {1: database, 2: asked})[1]
        except UnknownMethodError:
            found = self.asked(method, database, asked)
        return found

    def table(self, database: str, name: str) -> Struct:
        try:
            found: Struct = self.asked("get_table_req", {1: database, 2: name})[1]
        except UnknownMethodError:
            found = self.asked("get_table", database, name)
        return found


def _location(table: Struct) -> str | None:
    found = table.get(_PARAMETERS) or {}
    is_iceberg = str(found.get("table_type", "")).upper() == "ICEBERG"
    return found.get(_LOCATION) or None if is_iceberg else None


@contextmanager
def _connected(request: SourceRequest, title: str) -> Iterator[_Metastore]:
    """Yield a metastore, and translate its errors.

    Raises:
        DatasetError: it refuses a request, or cannot be reached.
    """
    known = params.checked(request.connector, request.params)
    timeout_s = known.seconds("client_timeout", _TIMEOUT_S)
    host, port = _address(known.text(_ENDPOINT) or "")
    try:
        connection = HiveConnection(host, port, timeout_s)
        try:
            yield _Metastore(connection, title)
        finally:
            connection.close()
    except ConnectionResetError as exc:
        raise DatasetError(
            "unavailable",
            f"{title} cannot be read: the metastore ended the connection; it may ask for TLS or a "
            "login (Kerberos, LDAP), which are not supported",
        ) from exc
    except (OSError, UnicodeError) as exc:
        raise DatasetError(
            "unavailable",
            f"{title} cannot be read ({type(exc).__name__}); check {_ENDPOINT} and the network",
        ) from exc
    except (WireError, UnknownMethodError) as exc:
        raise DatasetError(
            "invalid",
            f"{title} cannot be read: {_ENDPOINT} is not that of a Hive metastore without TLS and "
            "login",
        ) from exc


def _address(endpoint: str) -> tuple[str, int]:
    try:
        url = urlsplit(endpoint)
        host, port = url.hostname, url.port or _PORT
    except ValueError:
        host, port = None, 0
    if not endpoint.startswith("thrift://") or not host:
        raise DatasetError(
            "invalid", f"params.{_ENDPOINT} is not an address; write thrift://host:{_PORT}"
        )
    return host, port

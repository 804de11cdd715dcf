"""Tables of databases that are one file: the file, the name of a table, its declared columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_core.sqltext.grammar import CLOSED_QUOTED_NAME
from caraway_core.tables import RemoteTable
from caraway_plugins.sources import params

_PART = rf'(?:{CLOSED_QUOTED_NAME}|[^".]+)'
_Column = TypeVar("_Column")
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A file that a param names."""

    dataset: str
    param: str
    path: Path

    @classmethod
    def from_request(cls, request: SourceRequest, param: str) -> "DatabaseFile":
        """Return the file of a request.

        Raises:
            DatasetError: the param is missing, or another one is unknown.
        """
        written = params.checked(request.connector, request.params).text(param)
        if written is None:
            raise DatasetError(
                "invalid", f"dataset '{request.name}': params.{param} is missing; name the file"
            )
        return cls(request.name, param, (request.base_dir / written).absolute())

    def status(self, log: str) -> str:
        """Return what changes when the file changes, or the file that logs its changes.

        Raises:
            DatasetError: the file does not exist, or cannot be read.
        """
        parts = []
        for each in (self.path, Path(log)):
            try:
                status = each.stat()
            except FileNotFoundError:
                if each == self.path:
                    raise self.error("not_found", "does not exist") from None
                continue
            except OSError as exc:
                raise self.error("unavailable", f"cannot be read: {exc.strerror}") from exc
            parts.append(f"{status.st_mtime_ns} {status.st_size}")
        return " ".join(parts)

    def error(self, type_: DatasetErrorType, what: str) -> DatasetError:
        """Return an error that names the file by its param; its path is not shown."""
        return DatasetError(
            type_, f"dataset '{self.dataset}': the file of params.{self.param} {what}"
        )


def relation(request: SourceRequest) -> tuple[str, str]:
    """Return the schema and the table of a `from`; a table without a schema is in `main`.

    Raises:
        DatasetError: it names no table.
    """
    match = _NAME.fullmatch(request.path.strip())
    if match is None:
        kind = request.connector
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': '{request.path}' is no table; write '{kind}:table' or "
            f"'{kind}:schema.table', and names with dots in double quotes",
        )
    schema, table = (part and _bare(part) for part in match.groups())
    return schema or "main", table


def of_catalog(request: CatalogRequest, param: str, table: ListedTable | None) -> SourceRequest:
    """Return the request for a table of a catalog; without a table, for the file.

    Raises:
        DatasetError: `from` has a path.
    """
    kind = request.connector
    if request.path:
        raise DatasetError(
            "invalid",
            f"`from: {kind}` of a catalog takes no path; name the file in params.{param}, and "
            "schemas and tables in 'include'",
        )
    return request.asked(f'"{table.schema}"."{table.name}"' if table else "", table)


def of_server(request: CatalogRequest, param: str, table: ListedTable | None) -> SourceRequest:
    """Return the request for a table of a catalog; without a table, for the server.

    Raises:
        DatasetError: `from` has a path.
    """
    if request.path:
        raise DatasetError(
            "invalid",
            f"`from: {request.connector}` of a catalog takes no path; name one database in "
            f"params.{param}, or schemas and tables in 'include'",
        )
    return of_catalog(request, param, table)


def place(request: SourceRequest, param: str, table: ListedTable) -> RemoteTable:
    """Return where a table of a catalog is or will be, without its columns."""
    file = DatabaseFile.from_request(request, param)
    login = {"path": str(file.path)}
    return RemoteTable(pa.schema([]), request.connector, (table.schema, table.name), (), login)


def _bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def chosen(
    request: SourceRequest, known: Mapping[str, _Column]
) -> list[tuple[_Column, pa.DataType | None]]:
    """Return the columns of a dataset, each with its declared type; all of them if none is.

    Raises:
        DatasetError: the table lacks one.
    """
    if not request.declared:
        return [(each, None) for each in known.values()]
    for field in request.declared:
        if field.name not in known:
            raise DatasetError(
                "schema", f"dataset '{request.name}': its table has no column '{field.name}'"
            )
    return [(known[field.name], field.type) for field in request.declared]

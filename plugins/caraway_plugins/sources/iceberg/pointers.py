"""Catalogs that only know where the metadata of each table are: SQL databases, Glue and Hive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, unquote

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest

KINDS = ("sqlite", "postgres", "glue", "hive")
Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PointerPath:
    """A catalog, and what is named of it: all, a namespace, or a table."""

    kind: str
    namespace: Namespace = ()
    table: str = ""

    @property
    def title(self) -> str:
        """The table as errors name it."""
        return f"table '{'.'.join((*self.namespace, self.table))}'"

    @property
    def text(self) -> str:
        """The path as `path_of` reads it."""
        parts = [".".join(self.namespace), self.table]
        return f"{self.kind}://" + "/".join(quote(each, safe="") for each in parts if each)


@dataclass(frozen=True, slots=True)
class ListedPointer:
    """A table of a catalog, and the location of its newest metadata."""

    namespace: Namespace
    name: str
    location: str


class PointerCatalog(Protocol):
    """One kind of catalog. Its methods block, and raise DatasetError for users."""

    def tables(self, request: SourceRequest, path: PointerPath) -> Iterator[ListedPointer]:
        """Yield the tables of a namespace and of those below it; without one, all tables."""
        ...

    def location(self, request: SourceRequest, path: PointerPath) -> str:
        """Return the location of the newest metadata of a table."""
        ...


class MovingCatalog(PointerCatalog, Protocol):
    """A catalog in which tables are moved to their next metadata."""

    def move(self, request: SourceRequest, path: PointerPath, before: str, after: str) -> bool:
        """Set the location of the newest metadata; False: it is no longer `before`.

        Raises:
            DatasetError: it is refused. If it is "unavailable", it may be done all the same.
        """
        ...


def path_of(text: str) -> PointerPath | None:
    """Return what a path such as `glue://NAMESPACE/TABLE` names; None: it is another kind of path.

    Raises:
        DatasetError: it names neither a catalog, nor a namespace, nor a table.
    """
    kind, found, rest = text.partition("://")
    if not found or kind not in KINDS:
        return None
    parts = [unquote(each) for each in rest.split("/") if each]
    if len(parts) > len(("namespace", "table")):
        raise DatasetError(
            "invalid", f"the path is that of no table; write it as {kind}://NAMESPACE/TABLE"
        )
    namespace, table = (*parts, "", "")[:2]
    return PointerPath(kind, tuple(namespace.split(".")) if namespace else (), table)

"""Delta tables in folders, as datasets that statements write to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import FilesTable, RemoteTable
from caraway_plugins.sources.delta import DeltaSource


def request(folder: Path, path: str, **params: str) -> SourceRequest:
    return SourceRequest(TableName("t"), "delta", path, params, (), "read_write", folder, folder)


def written(folder: Path, path: str = "t", **params: str) -> RemoteTable:
    table = DeltaSource().resolve(request(folder, path, **params))
    assert isinstance(table, FilesTable) and table.written is not None
    return table.written


def refused(folder: Path, work: Callable[[], object], *words: str) -> QueryError:
    """Return the error of work that leaves the table as it was, and says so."""
    before = DeltaTable(folder / "t").version()
    with pytest.raises(QueryError) as caught:
        work()
    assert DeltaTable(folder / "t").version() == before
    for each in (*words, "no row was "):
        assert each in caught.value.message, caught.value.message
    assert str(folder) not in caught.value.message
    return caught.value

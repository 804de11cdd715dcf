"""Indexes are built before the first search, one after another, and once for each dataset."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_assist.search.searchable import SearchableTable
from caraway_assist.search.statements import SearchStatement
from caraway_assist.search.warm_up import SearchWarmUp
from caraway_core.errors import CatalogMovedError, NotDistributableError, QueryError
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.manifest.values.search_columns import (
    KeywordColumn,
    KeywordSettings,
    SearchColumns,
    VectorSettings,
)
from caraway_core.statements import ReadPoint
from tests.kit.driving import turns

DOCS, NOTES = TableName("docs"), TableName("notes")
SCHEMA = pa.schema([("body", pa.string()), ("title", pa.string())])
COUNTED = pa.table({name: [1] for name in ("is_exact", "segments", "rows", "missing")})


def columns(*names: str) -> SearchColumns:
    return SearchColumns(keywords=tuple(KeywordColumn(each) for each in names))


class Site:
    """A catalog and executors that build indexes as the test says."""

    def __init__(self) -> None:
        self.datasets: dict[TableName, Any] = {}
        self.built: list[TableName] = []
        self.failures: list[Exception] = []
        """What the next builds raise."""
        self.points: list[ReadPoint] = []
        self._at = 0
        any_self: Any = self
        self.warm_up = SearchWarmUp(any_self, any_self, any_self, any_self)

    def loads(self, name: TableName, search: SearchColumns, version: object = "v1") -> None:
        dataset = SimpleNamespace(search=search)
        self.datasets[name] = SimpleNamespace(dataset=dataset, version=version)
        self.warm_up.changed()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.warm_up.run())
        try:
            await turns()
            yield
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def reading(self) -> Any:
        """Pin the next version of the catalog, as a dispatch does."""
        self._at += 1
        return _Pinned(ReadPoint(CatalogVersion(self._at)))

    async def find(self, name: TableName) -> SearchableTable:
        search = self.datasets[name].dataset.search
        return SearchableTable(
            name, SCHEMA, (), search.keywords, VectorSettings(), KeywordSettings()
        )

    async def read(self, statement: SearchStatement, at: ReadPoint) -> tuple[pa.Table, bool]:
        assert statement.index is not None and statement.index.is_built
        self.points.append(at)
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.built.append(statement.index.table)
        return COUNTED, True


class _Pinned:
    def __init__(self, at: ReadPoint) -> None:
        self._at = at

    def __enter__(self) -> ReadPoint:
        return self._at

    def __exit__(self, *_: object) -> None:
        """Let the version go."""


async def test_each_loaded_dataset_is_built_once() -> None:
    site = Site()
    site.loads(DOCS, columns("body"))
    async with site.running():
        assert site.built == [DOCS] and site.warm_up.has_built(DOCS)
        site.loads(NOTES, columns("body"))
        await turns()
        site.loads(DOCS, columns("body"), version="v2")
        await turns()
        assert site.built == [DOCS, NOTES]


async def test_a_dataset_waits_until_it_is_loaded_and_is_searched() -> None:
    site = Site()
    site.loads(DOCS, columns("body"), version=None)
    site.loads(NOTES, SearchColumns())
    async with site.running():
        assert site.built == [] and not site.warm_up.has_built(DOCS)
        site.loads(DOCS, columns("body"))
        await turns()
        assert site.built == [DOCS]


async def test_other_search_columns_are_built_again_and_so_is_a_dataset_that_returns() -> None:
    site = Site()
    site.loads(DOCS, columns("body"))
    async with site.running():
        site.loads(DOCS, columns("title"))
        await turns()
        assert site.built == [DOCS, DOCS]
        gone = site.datasets.pop(DOCS)
        site.warm_up.changed()
        await turns()
        assert not site.warm_up.has_built(DOCS)
        site.loads(DOCS, gone.dataset.search)
        await turns()
        assert site.built == [DOCS, DOCS, DOCS]


@pytest.mark.parametrize("moves", [1, 3])
async def test_a_catalog_that_moves_meanwhile_is_read_again(moves: int) -> None:
    site = Site()
    site.failures = [CatalogMovedError(CatalogVersion(number)) for number in range(moves)]
    site.loads(DOCS, columns("body"))
    async with site.running():
        assert site.built == [DOCS] and site.warm_up.has_built(DOCS)
        versions = [each.catalog_version for each in site.points]
        last = None if moves == 3 else moves + 1
        assert versions == [*range(1, moves + 1), last], "the last try pins no version"


async def test_a_failure_leaves_the_index_to_the_first_search() -> None:
    site = Site()
    site.failures = [QueryError("out of memory")]
    site.loads(DOCS, columns("body"))
    site.loads(NOTES, columns("body"))
    async with site.running():
        assert site.built == [NOTES], "other datasets are built"
        assert site.warm_up.has_built(NOTES) and not site.warm_up.has_built(DOCS)
        site.warm_up.changed()
        await turns()
        assert site.built == [NOTES], "it is not tried at each change of the catalog"


async def test_a_dataset_that_statements_do_not_read_yet_is_tried_at_the_next_change() -> None:
    site = Site()
    site.failures = [NotDistributableError("no executor has its rows")]
    site.loads(DOCS, columns("body"))
    async with site.running():
        assert site.built == [] and not site.warm_up.has_built(DOCS)
        site.warm_up.changed()
        await turns()
        assert site.built == [DOCS] and site.warm_up.has_built(DOCS)

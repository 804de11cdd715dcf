"""Which tables can be searched, by which columns, and what is said of the others."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_assist.search.searchable import SearchableTable, SearchableTables
from caraway_core.errors import InvalidQueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.manifest.values.search_columns import (
    EmbeddedColumn,
    KeywordColumn,
    KeywordSettings,
    SearchColumns,
    VectorSettings,
)
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.states import DatasetState, ViewState

NOTES = TableName("notes")
SCHEMA = pa.schema([("id", pa.int64()), ("body", pa.string()), ("body_embedding", pa.string()),
                    ("title", pa.string())])  # fmt: skip
SEARCH = SearchColumns(
    (EmbeddedColumn("body", "e", ("id",)),), (KeywordColumn("title"), KeywordColumn("body"))
)


def dataset(name: str, search: SearchColumns = SEARCH) -> Dataset:
    return Dataset(name, f"file:{name}", "file", name, Path(), search=search)


class World:
    """A catalog of datasets and views, whose columns are read by statements."""

    def __init__(
        self, *tables: Dataset | View, reads: Mapping[str, set[str]] | None = None
    ) -> None:
        self.version = 1
        self.datasets = {TableName(t.name): DatasetState(t) for t in tables
                         if isinstance(t, Dataset)}  # fmt: skip
        self.views = {TableName(t.name): ViewState(t) for t in tables if isinstance(t, View)}
        self.source_catalogs = SimpleNamespace(states={"lake": None})
        self.facts = {TableName(view): ViewFacts(frozenset(map(TableName, names)))
                      for view, names in (reads or {}).items()}  # fmt: skip
        self.schemas: dict[str, pa.Schema] = {}
        self.read: list[TableName] = []
        # Any: the parts of a catalog and a dispatch that searches use.
        catalog: Any = self
        dispatch: Any = SimpleNamespace(views=lambda: self.facts)
        self.tables = SearchableTables(catalog, dispatch, self.schema)

    async def schema(self, name: TableName) -> pa.Schema:
        self.read.append(name)
        return self.schemas.get(name, SCHEMA)


def table(*, embedded: int = 1, keywords: int = 2) -> SearchableTable:
    vectors = tuple(EmbeddedColumn(f"v{n}", "e") for n in range(embedded))
    words = tuple(KeywordColumn(f"k{n}") for n in range(keywords))
    return SearchableTable(NOTES, SCHEMA, vectors, words, VectorSettings(), KeywordSettings())


def test_a_column_with_vectors_is_the_only_one_or_named() -> None:
    assert table().embedded_column(None).column == "v0"
    assert table(embedded=2).embedded_column("v1").column == "v1"
    for searched, column, message in (
        (table(embedded=2), None, "are v0, v1; name one of them"),
        (table(embedded=2), "k0", "are v0, v1; 'k0' is none of them"),
        (table(embedded=0), None, "has no column for vector search; add `embeddings`"),
    ):
        with pytest.raises(InvalidQueryError, match=message):
            searched.embedded_column(column)


def test_words_are_looked_for_in_all_columns_or_in_one() -> None:
    assert [each.column for each in table().keyword_columns(None)] == ["k0", "k1"]
    assert [each.column for each in table().keyword_columns("k1")] == ["k1"]
    assert [each.column for each in table(keywords=1).keyword_columns(None)] == ["k0"]
    with pytest.raises(InvalidQueryError, match="'v0' is none of them"):
        table().keyword_columns("v0")
    with pytest.raises(InvalidQueryError, match="add `full_text_search`"):
        table(keywords=0).keyword_columns(None)


def test_columns_that_a_table_lacks_are_refused_with_the_nearest() -> None:
    table().check_columns(["id", "title"])
    with pytest.raises(InvalidQueryError, match=r"no column 'titel'; did you mean 'title'\?"):
        table().check_columns(["id", "titel"])
    with pytest.raises(InvalidQueryError, match="no column 'x'; its columns are id, body"):
        table().check_columns(["x"])


@pytest.mark.parametrize("text", ["notes", "NOTES", "public.notes", '"notes"', " notes "])
def test_a_table_is_named_as_in_sql(text: str) -> None:
    assert World(dataset("notes")).tables.named(text) == NOTES


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("note", TableNotFoundError, r"no dataset or view 'note'; did you mean 'notes'\?"),
        ("x", TableNotFoundError, "no dataset or view 'x'; GET /v1/datasets lists"),
        ("lake.sales.orders", InvalidQueryError, "is a table of a catalog, and cannot be searched"),
        ("pond.sales.orders", TableNotFoundError, "no dataset or view 'pond.sales.orders'"),
        ("a b", InvalidQueryError, "a b"),
    ],
)
def test_what_is_no_table_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        World(dataset("notes")).tables.named(text)


async def test_the_key_of_rows_is_that_of_the_search_or_of_the_table() -> None:
    found = await World(dataset("notes")).tables.find(NOTES)
    assert (found.key, found.schema) == (("id",), SCHEMA)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (SearchColumns(), "'notes' cannot be searched; add `embeddings` or `full_text_search`"),
        (SearchColumns((EmbeddedColumn("text", "e"),)), "searched by column 'text', which it does"),
        (SearchColumns((), (KeywordColumn("text"),)), "searched by column 'text', which it does"),
        (SearchColumns((), (KeywordColumn("body", ("nr",)),)), "has `row_id` 'nr', a column that"),
    ],
)
async def test_what_cannot_be_searched_says_why(search: SearchColumns, message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        await World(dataset("notes", search)).tables.find(NOTES)


def view(name: str, search: SearchColumns | None = None) -> View:
    return View(name, "SELECT 1", Path(), search=search or SearchColumns())


async def test_a_view_passes_on_what_it_has_of_a_dataset() -> None:
    world = World(dataset("notes"), view("v"), reads={"v": {"notes", "plain"}})
    found = await world.tables.find(TableName("v"))
    assert [each.column for each in found.embedded] == ["body"]
    assert (found.embedded[0].row_id, found.key) == ((), ("id",))
    # Without the vectors, words are left; without the key, rows have none.
    world.schemas["v"] = pa.schema([("body", pa.string()), ("title", pa.string())])
    world.version += 1
    found = await world.tables.find(TableName("v"))
    assert (found.embedded, found.key) == ((), ())
    assert [each.column for each in found.keywords] == ["title", "body"]


async def test_a_view_of_two_searched_datasets_has_to_say_which() -> None:
    world = World(
        dataset("a"), dataset("b"), view("v"), view("w", SEARCH),
        reads={"v": {"a", "b"}, "w": {"a", "b"}},
    )  # fmt: skip
    with pytest.raises(InvalidQueryError, match="view 'v' passes on searched columns of several"):
        await world.tables.find(TableName("v"))
    assert (await world.tables.find(TableName("w"))).embedded == SEARCH.embedded


async def test_columns_of_a_view_are_read_once_for_each_version_of_the_catalog() -> None:
    world = World(dataset("notes"), view("v"), reads={"v": {"notes"}})
    for version in (1, 1, 2, 2):
        world.version = version
        await world.tables.find(TableName("v"))
    assert world.read == [TableName("v")] * 2


async def test_a_view_that_cannot_be_searched_is_refused_each_time() -> None:
    world = World(view("v"))
    for _ in range(2):
        with pytest.raises(InvalidQueryError, match="'v' cannot be searched"):
            await world.tables.find(TableName("v"))
    with pytest.raises(TableNotFoundError):
        await world.tables.find(TableName("gone"))

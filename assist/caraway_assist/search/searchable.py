"""Finds out what can be searched in a dataset or view: its columns, their keys and their types."""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_core.errors import InvalidQueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.manifest.texts import names
from caraway_core.manifest.values.search_columns import (
    EmbeddedColumn,
    KeywordColumn,
    KeywordSettings,
    SearchColumns,
    VectorSettings,
)
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.sqltext.searching import SearchMethod
from caraway_core.statements import ViewFacts
from caraway_scheduler.catalog.catalog import Catalog

ReadSchema = Callable[[TableName], Awaitable[pa.Schema]]
_REMEDY = (
    "add `embeddings` or `full_text_search` to a column under `columns` in the manifest (see "
    "docs/guides/search.md)"
)


@dataclass(frozen=True, slots=True)
class SearchableTable:
    """A table that can be searched. `primary_key` may be empty."""

    name: TableName
    schema: pa.Schema
    embedded: tuple[EmbeddedColumn, ...]
    keywords: tuple[KeywordColumn, ...]
    vectors: VectorSettings
    keyword_settings: KeywordSettings
    primary_key: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row: those of the search settings, else the primary key."""
        rows = [*(each.row_id for each in self.embedded), *(each.row_id for each in self.keywords)]
        return next(filter(None, rows), self.primary_key)

    def embedded_column(self, column: str | None) -> EmbeddedColumn:
        """Return a column with vectors; None: the only one.

        Raises:
            InvalidQueryError: there is no such column, or there are several.
        """
        known = {each.column: each for each in self.embedded}
        return known[self._named(column, known, "embeddings", SearchMethod.VECTOR)]

    def keyword_columns(self, column: str | None) -> tuple[KeywordColumn, ...]:
        """Return the columns that are searched for words: one of them, or all.

        Raises:
            InvalidQueryError: there is no such column.
        """
        known = {each.column: each for each in self.keywords}
        if column is None and len(known) > 1:
            return self.keywords
        return (known[self._named(column, known, "full_text_search", SearchMethod.TEXT)],)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Check that the table has columns.

        Raises:
            InvalidQueryError: it has not.
        """
        known = self.schema.names
        for column in columns:
            if column not in known:
                near = difflib.get_close_matches(column, known, n=1)
                hint = f"; did you mean '{near[0]}'?" if near else ";"
                raise InvalidQueryError(
                    f"'{self.name}' has no column '{column}'{hint} its columns are "
                    f"{', '.join(known[:20])}"
                )

    def _named(
        self, column: str | None, known: Mapping[str, object], key: str, method: SearchMethod
    ) -> str:
        if column is None and len(known) == 1:
            return next(iter(known))
        if column in known:
            return str(column)
        if not known:
            raise InvalidQueryError(
                f"'{self.name}' has no column for {method} search; add `{key}` to a column in the "
                "manifest"
            )
        what = "name one of them" if column is None else f"'{column}' is none of them"
        raise InvalidQueryError(
            f"the columns of '{self.name}' for {method} search are {', '.join(known)}; {what}"
        )


class SearchableTables:
    """The tables of a catalog that can be searched."""

    def __init__(
        self,
        catalog: Catalog,
        dispatch: Dispatch,
        read_schema: ReadSchema,
    ) -> None:
        """Take what reads the columns of a table by a statement, for views."""
        self._catalog = catalog
        self._dispatch = dispatch
        self._read_schema = read_schema
        self._kept: dict[TableName, tuple[object, SearchableTable]] = {}

    def named(self, text: str) -> TableName:
        """Return the name by which the catalog knows a table.

        Raises:
            InvalidQueryError: it is not the name of a table.
            TableNotFoundError: there is no such dataset or view.
        """
        try:
            spellings = [TableName(each) for each in names.spellings(text)]
        except ValueError as exc:
            raise InvalidQueryError(str(exc)) from exc
        views = self._catalog.views
        for name in spellings:
            if name in self._catalog.datasets or name in views:
                return name
        raise self._unknown(text)

    async def find(self, name: TableName) -> SearchableTable:
        """Return a table that can be searched.

        Raises:
            InvalidQueryError: it cannot be searched; the message has the remedy.
            QueryError: its columns cannot be read now.
        """
        state = self._catalog.datasets.get(name)
        if state is not None:
            if state.version is not None:
                schema = state.version.schema
            elif state.spec is not None and state.spec.query is None and not state.is_accelerated:
                schema = state.spec.schema
            else:
                schema = await self._read_schema(name)
            key = state.dataset.acceleration.primary_key if state.dataset.acceleration else ()
            return self._checked(_searchable(name, schema, state.dataset.search, key))
        view = self._catalog.views.get(name)
        if view is None:
            raise self._unknown(name)
        kept = self._kept.get(name)
        if kept is not None and kept[0] == (self._catalog.version, view.view):
            return self._checked(kept[1])
        schema = await self._read_schema(name)
        if view.view.search:
            table = _searchable(name, schema, view.view.search, ())
        else:
            table = self._inherited(name, schema)
        self._kept[name] = (self._catalog.version, view.view), table
        return self._checked(table)

    def _inherited(self, name: TableName, schema: pa.Schema) -> SearchableTable:
        """Search a view by the columns that it passes on from one dataset."""
        facts = self._dispatch.views().get(name, ViewFacts())
        found = []
        for read in sorted(facts.reads):
            state = self._catalog.datasets.get(read)
            if state is None or not state.dataset.search:
                continue
            key = state.dataset.acceleration.primary_key if state.dataset.acceleration else ()
            table = _passed_on(_searchable(name, schema, state.dataset.search, key))
            if table.embedded or table.keywords:
                found.append(table)
        if len(found) > 1:
            raise InvalidQueryError(
                f"view '{name}' passes on searched columns of several datasets; say under "
                "`columns` of the view which of them are searched"
            )
        return found[0] if found else _searchable(name, schema, SearchColumns(), ())

    def _checked(self, table: SearchableTable) -> SearchableTable:
        wanted = [*(each.column for each in table.embedded)]
        wanted += [each.column for each in table.keywords]
        if not wanted:
            raise InvalidQueryError(f"'{table.name}' cannot be searched; {_REMEDY}")
        if gone := [column for column in wanted if column not in table.schema.names]:
            raise InvalidQueryError(
                f"'{table.name}' is searched by column '{gone[0]}', which it does not have; "
                "correct `columns` in the manifest"
            )
        if gone := [name for name in table.key if name not in table.schema.names]:
            raise InvalidQueryError(
                f"'{table.name}' has `row_id` '{gone[0]}', a column that it does not have; correct "
                "`columns` in the manifest"
            )
        return table

    def _unknown(self, text: str) -> InvalidQueryError:
        parts = names.in_catalog(text)
        if parts is not None and parts[0] in self._catalog.source_catalogs.states:
            return InvalidQueryError(
                f"'{text}' is a table of a catalog, and cannot be searched; search a view over it "
                "that has `embeddings` or `full_text_search` in the manifest"
            )
        known = sorted({*self._catalog.datasets, *self._catalog.views})
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "; GET /v1/datasets lists the datasets"
        return TableNotFoundError(f"no dataset or view '{text}'{hint}", TableName(text))


def _searchable(
    name: TableName, schema: pa.Schema, search: SearchColumns, primary_key: tuple[str, ...]
) -> SearchableTable:
    return SearchableTable(
        name,
        schema,
        search.embedded,
        search.keywords,
        search.vectors,
        search.keyword_settings,
        primary_key,
    )


def _passed_on(table: SearchableTable) -> SearchableTable:
    """Return a view with those search columns and keys of a dataset that the view has."""
    names_ = frozenset(table.schema.names)
    key = table.key if names_.issuperset(table.key) else ()
    return replace(
        table,
        embedded=tuple(
            replace(each, row_id=())
            for each in table.embedded
            if {each.column, each.vector_column} <= names_
        ),
        keywords=tuple(
            replace(each, row_id=()) for each in table.keywords if each.column in names_
        ),
        primary_key=key,
    )

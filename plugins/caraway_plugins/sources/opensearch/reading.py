"""Documents of indexes, page by page, of a point in time.

A page comes after another one in the order of a shard, which costs nothing and is total. So each
search is one of a shard: with as many slices as shards, a slice is a shard.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from caraway_core.errors import DatasetError
from caraway_core.tables import TableSplit
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.documents.table import Columns, DocumentTable
from caraway_plugins.sources.opensearch import connecting, filters
from caraway_plugins.sources.opensearch.connecting import SearchClient, SearchLogin
from caraway_plugins.sources.opensearch.rules import FieldRule
from caraway_plugins.sources.opensearch.source_reader import SourceReader

_PAGE = 1_000
_KEEP = "5m"
INDEX = "_index"
Hits = Sequence[Mapping[str, Any]]
OUTSIDE = (filters.ID, INDEX)
"""Columns that are beside the fields of a document."""


@dataclass(frozen=True, slots=True)
class ShardSplit(TableSplit):
    """One of the shards of an index."""

    index: str
    number: int
    total: int
    size_bytes: int = field(default=0)

    @property
    def name(self) -> str:
        return f"{self.index} {self.number} of {self.total}"


@dataclass(frozen=True, slots=True)
class SearchReads:
    """Reads indexes. Each has a name that it is asked by, and a number of shards."""

    login: SearchLogin
    names: str
    indexes: tuple[tuple[str, int], ...]
    rules: tuple[FieldRule, ...] = ()
    numbered: frozenset[str] = frozenset()
    page: int = _PAGE
    """The most documents of an answer."""
    is_whole: bool = False
    """True if the columns of the table are all fields of the documents."""

    @property
    def title(self) -> str:
        return f"{self.login.product} index '{self.names}'"

    def pages(
        self, table: DocumentTable, request: RowRequest, stopped: threading.Event
    ) -> Iterator[Columns]:
        asked = [each for each in request.splits if isinstance(each, ShardSplit)]
        if not asked:
            asked = list(shards_of(self.indexes))
        read = list(table.fields(request) or table.schema.names)
        source = _Documents(self, table, request, read)
        with connecting.connected(self.login, stopped) as client:
            for name in dict.fromkeys(each.index for each in asked):
                shards = [each for each in asked if each.index == name]
                with client.point_in_time(name, _KEEP) as point:
                    for each in shards:
                        yield from source.pages(client, point, each, stopped)
                        if stopped.is_set():
                            return


def shards_of(indexes: Sequence[tuple[str, int]], size_bytes: int = 0) -> Iterator[ShardSplit]:
    """Yield all shards of indexes, each with the same share of the bytes."""
    share = size_bytes // max(sum(total for _, total in indexes), 1)
    for name, total in indexes:
        for number in range(total):
            yield ShardSplit(name, number, total, share)


class _Documents:
    """The documents of one request."""

    def __init__(
        self, reads: SearchReads, table: DocumentTable, request: RowRequest, read: Sequence[str]
    ) -> None:
        self._reads = reads
        conditions = filters.conditions_of(table.schema, reads.rules, table.own_filters(request))
        fields = [name for name in read if name not in OUTSIDE]
        self._body: dict[str, object] = {
            "query": {"bool": {"filter": conditions}},
            "sort": ["_doc"],
            "track_total_hits": False,
            # To leave out nothing costs a server less than to look for all fields.
            "_source": (reads.is_whole and len(read) >= len(table.schema)) or fields or False,
        }
        # A limit counts rows that pass all filters.
        self._is_short = request.limit is not None and not request.filters
        self._size = min(reads.page, max(request.limit or 1, 1)) if self._is_short else reads.page
        schema = table.schema
        chosen = [schema.field(name) for name in fields]
        searched = {each.column for each in reads.rules}
        self._reader = SourceReader(chosen, reads.numbered, searched, reads.title)

    def pages(
        self, client: SearchClient, point: str, part: ShardSplit, stopped: threading.Event
    ) -> Iterator[Columns]:
        pages = self._hits_by_page(client, point, part, stopped)
        for hits in pages if self._is_short else _read_ahead(pages):
            yield self._columns(hits)

    def _hits_by_page(
        self, client: SearchClient, point: str, part: ShardSplit, stopped: threading.Event
    ) -> Iterator[Hits]:
        body, size = {**self._body, "pit": {"id": point, "keep_alive": _KEEP}}, self._size
        if part.total > 1:
            body["slice"] = {"id": part.number, "max": part.total}
        while not stopped.is_set():
            try:
                hits = self._hits(client, {**body, "size": size}, part.index)
            except DatasetError as exc:
                if exc.type != "unsupported" or size == 1:
                    raise
                size = max(size // 4, 1)  # The page is too large.
                continue
            yield hits
            if len(hits) < size:
                return
            body["search_after"] = hits[-1]["sort"]

    def _hits(self, client: SearchClient, body: Mapping[str, object], index: str) -> Hits:
        title = self._reads.title
        try:
            answer = client.search(None, body)
        except DatasetError as exc:
            if exc.type != "not_found":
                raise
            raise DatasetError(
                "unavailable",
                f"{title}: the server ended the point in time of this statement; repeat it",
            ) from exc
        if answer["_shards"]["total"] != dict(self._reads.indexes)[index]:
            # A slice would be a part of several shards, whose documents have one order each.
            raise DatasetError(
                "unavailable",
                f"{title} has other indexes or shards than when it was looked up; repeat the "
                "statement in half a minute",
            )
        found: Hits = answer["hits"]["hits"]
        return found

    def _columns(self, hits: Hits) -> Columns:
        outside = {name: [each[name] for each in hits] for name in OUTSIDE}
        return outside | self._reader.columns(each.get("_source") or {} for each in hits)


def _read_ahead(pages: Iterator[Hits]) -> Iterator[Hits]:
    """Yield pages, and ask for the next one meanwhile."""
    with ThreadPoolExecutor(1, "next page of an index") as ahead:
        following = ahead.submit(next, pages, None)
        while (page := following.result()) is not None:
            following = ahead.submit(next, pages, None)
            yield page

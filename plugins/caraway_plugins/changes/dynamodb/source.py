"""A table of DynamoDB as a change source: all of its items, then its stream."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.changes import Changes, Op, joined
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest, SourceBatch
from caraway_plugins.changes.dynamodb import positions
from caraway_plugins.changes.dynamodb.shards import ShardPage, TableStream
from caraway_plugins.sources import params
from caraway_plugins.sources.api import limiting
from caraway_plugins.sources.documents.table import Documents, DocumentTable
from caraway_plugins.sources.dynamodb import items
from caraway_plugins.sources.dynamodb import source as tables
from caraway_plugins.sources.dynamodb.source import DescribedItems

_VIEWS = frozenset({"NEW_IMAGE", "NEW_AND_OLD_IMAGES"})
_IDLE_S = 1.0


@dataclass(frozen=True, slots=True)
class FollowedItems:
    """A table that is followed, its stream, and the time between two looks at the stream."""

    described: DescribedItems
    table: DocumentTable
    stream: str
    idle_s: float

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key."""
        return self.described.reads.key.names


class DynamodbChanges:
    """Implements `ChangeSource` for a table of DynamoDB."""

    def __init__(self, request: ChangeRequest) -> None:
        self._request = request

    async def schema(self) -> pa.Schema:
        return (await self._look()).table.schema

    async def primary_key(self) -> tuple[str, ...]:
        return (await self._look()).key

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        followed = await self._look()
        reads, table = followed.described.reads, followed.table
        stream = TableStream(reads.login, followed.stream, reads.title)
        at = None if position is None else positions.read(position, followed.stream)
        emptied: Changes | None = None
        if at is None or at.is_loading:
            await asyncio.to_thread(stream.begin)
            emptied = table.changes([{}], [Op.TRUNCATE], 0)
            # Rows that change during the scan are in the stream, too.
            pages = reads.answers("scan", {"ConsistentRead": True})
            while (page := await asyncio.to_thread(next, pages, None)) is not None:
                rows = await asyncio.to_thread(_loaded, table, page)
                changes = rows if emptied is None else joined([emptied, rows])
                emptied = None
                yield SourceBatch(changes, stream.position.text(), is_whole=False)
            is_loading = True
        else:
            stream.resume(at)
            is_loading = False
            yield SourceBatch(table.changes([], [], 0), at.text())
        while True:
            is_idle = True
            told = stream.position
            shards = stream.pages()
            while (read := await asyncio.to_thread(next, shards, None)) is not None:
                if read.records or read.position != told:
                    is_idle, told = False, read.position
                    changes = await asyncio.to_thread(_recorded, followed, read)
                    yield SourceBatch(changes, read.position.text(), not is_loading, read.made_at)
            if is_loading and stream.is_at_end:
                is_loading = False
                stream.complete()
                yield SourceBatch(table.changes([], [], 0), stream.position.text())
            elif is_idle and not is_loading:
                await asyncio.sleep(followed.idle_s)

    async def confirm(self, position: str) -> None:
        """Do nothing: a stream has its records for 24 hours."""

    async def aclose(self) -> None:
        """Do nothing: clients are shared."""

    async def _look(self) -> FollowedItems:
        return await asyncio.to_thread(_look, self._request)


def _look(request: ChangeRequest) -> FollowedItems:
    """Look a table up whose stream has its changes.

    Raises:
        DatasetError: it cannot be followed; the message says what to change.
    """
    known = params.checked(request.connector, request.params)
    described = tables.describe(request.as_source(), known)
    title, description = described.reads.title, described.description
    view = (description.get("StreamSpecification") or {}).get("StreamViewType")
    stream = description.get("LatestStreamArn")
    if view not in _VIEWS or not stream:
        raise DatasetError(
            "unsupported",
            f"{title} cannot be followed: it has no stream with new images; enable one with the "
            "view type NEW_IMAGE or NEW_AND_OLD_IMAGES",
        )
    depth = limiting.number(known, "unnest_depth", 0)
    learned = None if request.declared else request.learned()
    fields: Sequence[pa.Field] = request.declared if learned is None else list(learned)
    columns = tables.columns_of(fields, described, known, depth)
    key = described.reads.key.names
    if missing := sorted({*key} - {*columns.schema.names}):
        raise DatasetError(
            "invalid",
            f"{title}: the dataset has no column '{missing[0]}', which is part of the key; "
            "declare it under 'columns'",
        )
    if request.primary_key and {*request.primary_key} != {*key}:
        raise DatasetError(
            "invalid",
            f"{title} has the key {', '.join(key)}; declare it as 'primary_key', or none",
        )
    table = DocumentTable(columns.schema, described.reads, columns.texts, depth)
    idle_s = known.seconds("scan_interval", _IDLE_S)
    return FollowedItems(described, table, stream, idle_s)


def _loaded(table: DocumentTable, page: Documents) -> Changes:
    return table.changes(page, [Op.UPSERT] * len(page), len(page))


def _recorded(followed: FollowedItems, page: ShardPage) -> Changes:
    documents: list[dict[str, Any]] = []
    ops: list[Op] = []
    for record in page.records:
        is_removed = record["eventName"] == "REMOVE"
        change = record["dynamodb"]
        documents.append(items.values_of(change["Keys" if is_removed else "NewImage"]))
        ops.append(Op.DELETE if is_removed else Op.UPSERT)
    return followed.table.changes(documents, ops, len(ops))

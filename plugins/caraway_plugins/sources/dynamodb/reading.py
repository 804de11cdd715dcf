"""Items of a table of DynamoDB, page by page."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.errors import DatasetError
from caraway_core.tables import TableSplit
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.documents.table import Documents, DocumentTable
from caraway_plugins.sources.dynamodb import conditions, connecting, items
from caraway_plugins.sources.dynamodb.conditions import ItemColumns, ItemKey, SecondaryIndex
from caraway_plugins.sources.dynamodb.connecting import DynamoLogin


@dataclass(frozen=True, slots=True)
class SegmentSplit(TableSplit):
    """One of the segments that a scan is divided into."""

    number: int
    total: int
    size_bytes: int = field(default=0)

    @property
    def name(self) -> str:
        return f"{self.number} of {self.total}"


@dataclass(frozen=True, slots=True)
class DynamoReads:
    """Reads a table of DynamoDB."""

    login: DynamoLogin
    table: str
    key: ItemKey
    indexes: tuple[SecondaryIndex, ...] = ()

    @property
    def title(self) -> str:
        return f"dynamodb table '{self.table}'"

    def pages(
        self, table: DocumentTable, request: RowRequest, stopped: threading.Event
    ) -> Iterator[Documents]:
        asked = self._asked(table, request, self.indexes)
        if asked is None:
            return
        operation, arguments = asked
        if "IndexName" in arguments and not self._may_query(arguments):
            asked = self._asked(table, request, ())
            assert asked is not None
            operation, arguments = asked
        segments = [each for each in request.splits if isinstance(each, SegmentSplit)]
        if operation == "query" and segments:
            # A query has no segments: the first one reads all of it.
            if not any(each.number == 0 for each in segments):
                return
            segments = []
        parts: list[dict[str, Any]] = [
            {"Segment": each.number, "TotalSegments": each.total} for each in segments
        ]
        for part in parts or [{}]:
            for page in self.answers(operation, {**arguments, **part}):
                yield page
                if stopped.is_set():
                    return

    def _asked(
        self, table: DocumentTable, request: RowRequest, indexes: Sequence[SecondaryIndex]
    ) -> tuple[str, Mapping[str, object]] | None:
        columns = ItemColumns(table.schema, table.texts, self.key)
        filters, names = table.own_filters(request), table.fields(request)
        return conditions.request_of(columns, filters, names, request.limit, indexes)

    def _may_query(self, arguments: Mapping[str, object]) -> bool:
        """Return whether an index can be read: it may be gone, or the user have no right for it.

        Raises:
            DatasetError: DynamoDB cannot be reached.
        """
        try:
            next(self.answers("query", {**arguments, "Limit": 1}), None)
        except DatasetError as exc:
            if exc.type == "unavailable":
                raise
            return False
        return True

    def answers(self, operation: str, arguments: dict[str, object]) -> Iterator[Documents]:
        """Yield the items of each page of a query or a scan.

        Raises:
            DatasetError: DynamoDB refuses it, or cannot be reached.
        """
        client = connecting.client_of(self.login)
        request = {"TableName": self.table, **arguments}
        while True:
            answer = connecting.call(client, operation, self.title, **request)
            yield [items.values_of(each) for each in answer["Items"]]
            last = answer.get("LastEvaluatedKey")
            if not last:
                return
            request["ExclusiveStartKey"] = last

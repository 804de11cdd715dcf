"""Items of a table of DynamoDB, page by page."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from caraway_core.tables import TableSplit
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.documents.table import Documents, DocumentTable
from caraway_plugins.sources.dynamodb import conditions, connecting, items
from caraway_plugins.sources.dynamodb.conditions import ItemColumns, ItemKey
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

    @property
    def title(self) -> str:
        return f"dynamodb table '{self.table}'"

    def pages(
        self, table: DocumentTable, request: RowRequest, stopped: threading.Event
    ) -> Iterator[Documents]:
        columns = ItemColumns(table.schema, table.texts, self.key)
        asked = conditions.request_of(
            columns, table.own_filters(request), table.fields(request), request.limit
        )
        if asked is None:
            return
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

    def answers(self, operation: str, arguments: dict[str, Any]) -> Iterator[Documents]:
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

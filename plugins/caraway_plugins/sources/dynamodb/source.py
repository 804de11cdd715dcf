"""Datasets that are a table of DynamoDB: `from: dynamodb:TABLE`."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_plugins.sources import key_ranges, params
from caraway_plugins.sources.api import limiting, pointers
from caraway_plugins.sources.documents import shape
from caraway_plugins.sources.documents.shape import DocumentShape
from caraway_plugins.sources.documents.table import DocumentTable
from caraway_plugins.sources.dynamodb import connecting, declared
from caraway_plugins.sources.dynamodb.conditions import ItemKey, KeyAttribute, SecondaryIndex
from caraway_plugins.sources.dynamodb.reading import DynamoReads, SegmentSplit
from caraway_plugins.sources.params import Params

_SAMPLED = 1_000
_MOST_SEGMENTS = 1_000
_KEY_TYPES: Mapping[str, pa.DataType] = {"S": pa.string(), "N": pa.int64(), "B": pa.binary()}


class DynamodbSource:
    """The items of a table."""

    declaration = declared.DYNAMODB
    capabilities = SourceCapabilities(
        projection=True, filters=True, limit=True, splits=True, changes=True
    )

    def resolve(self, request: SourceRequest) -> DocumentTable:
        known = params.checked(request.connector, request.params)
        described = describe(request, known)
        depth = limiting.number(known, "unnest_depth", 0)
        columns = columns_of(request.declared, described, known, depth)
        table = DocumentTable(
            columns.schema,
            described.reads,
            columns.texts,
            depth,
            described.size_bytes,
            described.row_count,
        )
        return _divided(table, known)

    def fingerprint(self, request: SourceRequest) -> str | None:
        table = self.resolve(request)
        parts = [(each.name, str(each.type)) for each in table.schema]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DescribedItems:
    """A table of DynamoDB as it describes itself; its numbers are some hours old."""

    reads: DynamoReads
    size_bytes: int
    row_count: int | None
    description: Mapping[str, Any]


def describe(request: SourceRequest, known: Params) -> DescribedItems:
    """Look a table up.

    Raises:
        DatasetError: it does not exist, or cannot be read.
    """
    if not request.path:
        raise DatasetError(
            "invalid", f"dataset '{request.name}': 'dynamodb:' has no table; write dynamodb:TABLE"
        )
    login = connecting.login_of(known)
    client = connecting.client_of(login)
    answer = connecting.call(
        client, "describe_table", f"dynamodb table '{request.path}'", TableName=request.path
    )
    table = answer["Table"]
    kinds = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    key = _key(table["KeySchema"], kinds)
    reads = DynamoReads(login, request.path, key, tuple(_indexes(table, key, kinds)))
    size_bytes = int(table.get("TableSizeBytes") or 0)
    return DescribedItems(reads, size_bytes, table.get("ItemCount") or None, table)


def _key(schema: Sequence[Mapping[str, str]], kinds: Mapping[str, str]) -> ItemKey:
    keys = {
        each["KeyType"]: KeyAttribute(each["AttributeName"], kinds[each["AttributeName"]])
        for each in schema
    }
    return ItemKey(keys["HASH"], keys.get("RANGE"))


def _indexes(
    table: Mapping[str, Any], key: ItemKey, kinds: Mapping[str, str]
) -> Iterator[SecondaryIndex]:
    """Yield the indexes that are whole; keys of more than two attributes are not known here."""
    local, others = (table.get(f"{each}SecondaryIndexes") or () for each in ("Local", "Global"))
    for each in (*local, *others):
        is_whole = each.get("IndexStatus", "ACTIVE") == "ACTIVE" and not each.get("Backfilling")
        if not is_whole or len({part["KeyType"] for part in each["KeySchema"]}) < len(
            each["KeySchema"]
        ):
            continue
        own, projection = _key(each["KeySchema"], kinds), each.get("Projection") or {}
        names = (*key.names, *own.names, *(projection.get("NonKeyAttributes") or ()))
        is_all = projection.get("ProjectionType") == "ALL"
        yield SecondaryIndex(each["IndexName"], own, None if is_all else frozenset(names))


def columns_of(
    fields: Sequence[pa.Field], described: DescribedItems, known: Params, depth: int
) -> DocumentShape:
    """Return the columns that the manifest declares; without these, those of a sample of items.

    Raises:
        DatasetError: the items cannot be read, or have no usable columns.
    """
    if fields:
        return shape.declared_shape(fields)
    reads = described.reads
    most = known.count("schema_infer_max_records") or _SAMPLED
    pages = reads.answers("scan", {"Limit": most})
    sample = islice((item for page in pages for item in page), most)
    unnested = (pointers.unnested(each, depth, reads.title) for each in sample)
    found = shape.shape_of(unnested, reads.title)
    # A table without items has the columns of its key.
    parts = [reads.key.partition, *([reads.key.sort] if reads.key.sort else [])]
    keys = [pa.field(part.name, _KEY_TYPES[part.kind]) for part in parts]
    missing = [each for each in keys if each.name not in found.schema.names]
    return DocumentShape(pa.schema([*missing, *found.schema]), found.texts)


def _divided(table: DocumentTable, known: Params) -> DocumentTable:
    count = known.count("scan_segments")
    if count is None:
        count = min(table.size_bytes // key_ranges.SPLIT_BYTES, key_ranges.MOST_SPLITS)
    if count > _MOST_SEGMENTS:
        raise DatasetError("invalid", f"params.scan_segments is above {_MOST_SEGMENTS}")
    if count < 2:
        return table
    share = table.size_bytes // count
    splits = tuple(SegmentSplit(number, count, share) for number in range(count))
    return replace(table, splits=splits)

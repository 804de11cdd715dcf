"""Ranges of ids, by which several executors read one collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bson.objectid import ObjectId
from pymongo.errors import OperationFailure, PyMongoError

from caraway_core.tables import TableSplit
from caraway_plugins.sources import key_ranges

_SAMPLED = 1_000
_SKIPS = 2 * key_ranges.MOST_SPLITS
_MOST_SKIPPED = 1_000_000
_LEAST_SHARE = 0.9
_KINDS: Mapping[type, str] = {ObjectId: "objectId", str: "string"}
_TYPES: Mapping[str, Sequence[str]] = {
    "objectId": ["objectId"],
    "string": ["string"],
    "int": ["int", "long"],
}
"""The types of BSON that a range compares: others would be in none."""
Id = ObjectId | str | int


@dataclass(frozen=True, slots=True)
class IdSplit(TableSplit):
    """The documents whose id is of one kind and in a range.

    The last one, which has no end, also has those with ids of other kinds.
    """

    kind: str
    low: Id | None
    high: Id | None
    size_bytes: int = field()

    @property
    def name(self) -> str:
        return f"{self.kind} {self.low} {self.high}"

    def condition(self) -> Mapping[str, Any]:
        """Return the filter of its documents."""
        types = {"$type": list(_TYPES[self.kind])}
        low = {} if self.low is None else {"$gte": self.low}
        high = {} if self.high is None else {"$lt": self.high}
        inside = {"_id": {**types, **low, **high}}
        return inside if high else {"$or": [inside, {"_id": {"$not": types}}]}


def splits(collection: Any, *, is_collated: bool) -> tuple[int, tuple[IdSplit, ...]]:
    """Return the size of a collection and its parts; 0 and none if the server does not say them."""
    try:
        size = int(collection.database.command("collStats", collection.name).get("size", 0))
        if size < 2 * key_ranges.SPLIT_BYTES:
            return size, ()
        ids = _ids(collection)
    except PyMongoError:
        return 0, ()
    return size, cut(ids, size, is_collated=is_collated)


def _ids(collection: Any) -> list[object]:
    """Return some ids of a collection, from all over it."""
    stages = [{"$sample": {"size": _SAMPLED}}, {"$project": {"_id": 1}}]
    try:
        return [each["_id"] for each in collection.aggregate(stages)]
    except OperationFailure:
        # Some servers do not sample. To skip documents takes as long as to count them.
        if (count := collection.estimated_document_count()) > _MOST_SKIPPED:
            raise
    places = {number * (count - 1) // _SKIPS for number in range(_SKIPS + 1)}
    ordered = collection.find({}, {"_id": 1}).sort("_id", 1)
    return [each["_id"] for place in places for each in ordered.clone().skip(place).limit(1)]


def cut(ids: Sequence[Any], size_bytes: int, *, is_collated: bool) -> tuple[IdSplit, ...]:
    """Cut a collection at some of its ids, between which are about as many documents each.

    A collection of less than two parts is not cut, nor one whose ids are of many kinds.
    """
    kinds = Counter(map(_kind, ids))
    kind, share = kinds.most_common(1)[0] if kinds else (None, 0)
    # A collation compares texts otherwise than the sorted sample.
    if kind is None or share < len(ids) * _LEAST_SHARE or (kind == "string" and is_collated):
        return ()
    known = sorted({each for each in ids if _kind(each) == kind})
    count = min(size_bytes // key_ranges.SPLIT_BYTES, key_ranges.MOST_SPLITS, len(known) - 1)
    if count < 2:
        return ()
    cuts = [known[number * (len(known) - 1) // count] for number in range(1, count)]
    edges = [None, *dict.fromkeys(cuts), None]
    part = size_bytes // (len(edges) - 1)
    return tuple(IdSplit(kind, low, high, part) for low, high in pairwise(edges))


def _kind(id_: Any) -> str | None:
    if isinstance(id_, int) and not isinstance(id_, bool):
        return "int"
    return _KINDS.get(type(id_))

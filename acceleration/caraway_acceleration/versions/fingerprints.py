"""Fingerprints of what defines the rows of an accelerated dataset.

They are stored with versions and outlive releases. So each part is written out here by name, and a
part that a manifest does not have is left out: a release with more settings computes the same.
"""

import hashlib
import json
import re
from collections.abc import Mapping

from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.manifest.values.search_columns import EmbeddedColumn
from caraway_core.partitions.keys import BucketKey, ByColumn, Term

_FORM = "v2-"
_LENGTH = 16
_EARLIER = re.compile(r"[0-9a-f]{16}")


def fingerprint(dataset: Dataset, acceleration: Acceleration) -> str:
    """Return a hash of everything that defines the rows of a version, without secrets."""
    text = json.dumps(_definition(dataset, acceleration), sort_keys=True)
    return _FORM + hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def earlier_fingerprint(dataset: Dataset, acceleration: Acceleration) -> str:
    """Return the hash that the release before 0.1 stored, which versions may still have."""
    unique = tuple(each.columns for each in acceleration.indexes if each.is_unique)
    text = repr(
        (
            dataset.source,
            dataset.columns,
            acceleration.refresh.sql,
            acceleration.sort_by,
            acceleration.primary_key,
            acceleration.partition_by,
            *((unique,) if unique else ()),
            *((dataset.search.embedded,) if dataset.search.embedded else ()),
        )
    )
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def is_earlier_form(origin: str) -> bool:
    """Return whether a fingerprint has the earlier form, which differed between releases."""
    return _EARLIER.fullmatch(origin) is not None


def _definition(dataset: Dataset, acceleration: Acceleration) -> Mapping[str, object]:
    parts: dict[str, object] = {
        "source": dataset.source,
        "columns": [[each.name, each.type] for each in dataset.columns],
        "refresh_sql": acceleration.refresh.sql,
        "sort_by": [str(each) for each in acceleration.sort_by],
        "primary_key": list(acceleration.primary_key),
        "partition_by": [_term(each) for each in acceleration.partition_by.terms],
        "unique": [list(each.columns) for each in acceleration.indexes if each.is_unique],
        "embedded": [_embedded(each) for each in dataset.search.embedded],
    }
    return {name: part for name, part in parts.items() if part}


def _term(term: Term) -> list[object]:
    named = [term.name] if term.name else []
    if isinstance(term, BucketKey):
        return ["bucket", term.count, term.column, *named]
    if isinstance(term, ByColumn):
        return ["column", term.column, *named]
    return ["sql", term.sql, *named]


def _embedded(column: EmbeddedColumn) -> list[object]:
    found: list[object] = [column.column, column.embedder, list(column.row_id)]
    if (cut := column.chunking) is not None:
        found.append([cut.target_size, cut.overlap_size, cut.trims_whitespace])
    return found

"""The statements that write tables of each version of the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from caraway_plugins.sources.iceberg.writing import lineage

_ENCRYPTION = "encryption.key-id"
_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")


def refusal(document: Mapping[str, Any], is_change: bool) -> str | None:
    """Return why rows of a table are not added, or changed if so; None: they are.

    `document` is the metadata of the table.
    """
    version = int(document["format-version"])
    if document.get("encryption-keys") or _ENCRYPTION in (document.get("properties") or {}):
        return "the table is encrypted"
    schemas = document["schemas"]
    current = next(each for each in schemas if each["schema-id"] == document["current-schema-id"])
    names = {each["name"] for each in current["fields"]}
    if is_change and lineage.is_kept(version) and (taken := names.intersection(lineage.NAMES)):
        return f"its rows have ids, and its column '{min(taken)}' has the name of these"
    return next(_unwritten(current), None)


def _unwritten(type_: object) -> Iterator[str]:
    """Yield why fields in a type, or in a schema, are not written."""
    if type_ in _NANOSECONDS:
        yield "it has columns of nanoseconds"
    if not isinstance(type_, Mapping):
        return
    for each in type_.get("fields", ()):
        if each.get("write-default") is not None:
            yield f"column '{each['name']}' has a default value for new rows"
        yield from _unwritten(each["type"])
    for inner in ("element", "key", "value"):
        yield from _unwritten(type_.get(inner))

"""Content negotiation: selects a format from `Accept`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from caraway_serving import codings
from caraway_serving.errors import RefusedRequestError
from caraway_serving.formats import Format

_VENDOR = re.compile(r"application/vnd\.[a-z0-9.\-]+\.sql\.v1\+json")

MEDIA_TYPES: Mapping[str, Format] = {
    "application/json": "json",
    "text/csv": "csv",
    "text/plain": "text",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/vnd.caraway.sql.v1+json": "versioned",
}
STORED_TYPES: Mapping[str, Format] = {
    **{name: format_ for name, format_ in MEDIA_TYPES.items() if format_ != "versioned"},
    "application/vnd.apache.parquet": "parquet",
}
"""The formats of stored results. The versioned format includes timing, which they do not have."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A format with the media type that the client requested."""

    format: Format
    media_type: str

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; charset=utf-8" if self.format in _TEXTS else self.media_type


_TEXTS = frozenset({"csv", "text"})
_DEFAULT = Choice("json", "application/json")


def representation(accept: str | None, known: Mapping[str, Format] = MEDIA_TYPES) -> Choice:
    """Select the type with the highest q-value; ties go to the most specific, then the first.

    Raises:
        RefusedRequestError: no accepted type is supported.
    """
    if not accept or not accept.strip():
        return _DEFAULT
    ranges = codings.weighted(accept)
    refused = {name for name, q in ranges if q <= 0}
    ranked = sorted(ranges, key=lambda item: (-item[1], item[0].count("*")))
    for name, q in ranked:
        if q > 0 and (choice := _choice(name, refused, known)):
            return choice
    raise RefusedRequestError(
        406, f"none of '{accept}' is supported; Accept one of: {', '.join(known)}"
    )


def _choice(name: str, refused: set[str], known: Mapping[str, Format]) -> Choice | None:
    if name in refused:
        return None
    if format_ := known.get(name):
        return Choice(format_, name)
    if "versioned" in known.values() and _VENDOR.fullmatch(name):
        return Choice("versioned", name)
    prefix = name.removesuffix("*")
    if name != "*/*" and not name.endswith("/*"):
        return None
    for media_type, format_ in known.items():
        if media_type not in refused and (name == "*/*" or media_type.startswith(prefix)):
            return Choice(format_, media_type)
    return None

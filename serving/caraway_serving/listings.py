"""Formats listings as JSON or CSV, according to `format` or `Accept`."""

import csv
import io
from collections.abc import Mapping, Sequence
from enum import StrEnum

from starlette.responses import JSONResponse, Response


class ListingFormat(StrEnum):
    """The encodings of a listing."""

    JSON = "json"
    CSV = "csv"


def respond(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    format_: ListingFormat | None,
    accept: str | None,
) -> Response:
    """Return rows as a JSON array, or as CSV with exactly `columns`."""
    if choose(format_, accept) is ListingFormat.JSON:
        return JSONResponse(list(rows))
    return Response(to_csv(rows, columns), media_type="text/csv; charset=utf-8")


def choose(format_: ListingFormat | None, accept: str | None) -> ListingFormat:
    """Return the format that `format` names, or else `Accept`."""
    if format_ is not None:
        return format_
    return ListingFormat.CSV if _prefers_csv(accept) else ListingFormat.JSON


def to_csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Encode rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        # A CSV cell shows only the code of a structured error.
        return str(value.get("code", ""))
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _prefers_csv(accept: str | None) -> bool:
    names = [part.partition(";")[0].strip().lower() for part in (accept or "").split(",")]
    return "text/csv" in names and "application/json" not in names

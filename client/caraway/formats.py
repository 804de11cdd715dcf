"""The forms in which a runtime answers SQL, by the names that users type."""

from enum import StrEnum


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"

    @property
    def media_type(self) -> str:
        """What to put into `Accept` to get this form."""
        return _MEDIA_TYPES[self]

    @property
    def is_binary(self) -> bool:
        return self is Format.ARROW


class ResultFormat(StrEnum):
    """How the rows of an asynchronous query are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        """What to put into `Accept` to get this form; JSON is put together from its lines."""
        if self is ResultFormat.PARQUET:
            return "application/vnd.apache.parquet"
        # As JSON, these come chunk by chunk.
        return Format.NDJSON.media_type if self is ResultFormat.JSON else Format(self).media_type

    @property
    def is_binary(self) -> bool:
        return self in (ResultFormat.ARROW, ResultFormat.PARQUET)


_MEDIA_TYPES = {
    Format.TABLE: "text/plain",
    Format.JSON: "application/json",
    Format.CSV: "text/csv",
    Format.NDJSON: "application/x-ndjson",
    Format.ARROW: "application/vnd.apache.arrow.stream",
}

"""Result formats, by the names users type."""

from enum import StrEnum


class Format(StrEnum):
    """The format of the rows of a statement."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        """The value of the `Accept` header for this format."""
        return _MEDIA_TYPES[self]

    @property
    def is_binary(self) -> bool:
        return self in (Format.ARROW, Format.PARQUET)


class ResultFormat(StrEnum):
    """The format of the rows of an asynchronous query."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        """The value of the `Accept` header for this format."""
        # The results route sends JSON as lines; the client joins them into an array.
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
    # Of results that are stored; `caraway sql` writes it itself.
    Format.PARQUET: "application/vnd.apache.parquet",
}

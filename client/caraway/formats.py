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


_MEDIA_TYPES = {
    Format.TABLE: "text/plain",
    Format.JSON: "application/json",
    Format.CSV: "text/csv",
    Format.NDJSON: "application/x-ndjson",
    Format.ARROW: "application/vnd.apache.arrow.stream",
}

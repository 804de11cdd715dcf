import pytest

from caraway_serving.errors import RefusedRequestError
from caraway_serving.negotiation import STORED_TYPES, coding, representation


@pytest.mark.parametrize(
    ("accept", "format_", "media_type"),
    [
        (None, "json", "application/json"),
        ("", "json", "application/json"),
        ("*/*", "json", "application/json"),
        ("text/csv", "csv", "text/csv"),
        ("text/*", "csv", "text/csv"),
        ("TEXT/PLAIN", "text", "text/plain"),
        ("text/csv;q=0.5, text/plain;q=0.9", "text", "text/plain"),
        ("text/csv, */*;q=0.1", "csv", "text/csv"),
        ("*/*, text/csv", "csv", "text/csv"),
        ("application/json;q=0, */*", "csv", "text/csv"),
        ("image/png, application/json;q=0.1", "json", "application/json"),
        ("application/vnd.spiceai.sql.v1+json", "versioned", "application/vnd.spiceai.sql.v1+json"),
        ("application/vnd.service.sql.v1+json", "versioned", "application/vnd.service.sql.v1+json"),
        ("application/vnd.apache.arrow.stream", "arrow", "application/vnd.apache.arrow.stream"),
        ("application/x-ndjson", "ndjson", "application/x-ndjson"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json", "application/json"),
    ],
)
def test_highest_q_value_wins(accept: str | None, format_: str, media_type: str) -> None:
    choice = representation(accept)
    assert (choice.format, choice.media_type) == (format_, media_type)


@pytest.mark.parametrize("accept", ["image/png", "application/json;q=0", "text/csv;q=nonsense"])
def test_nothing_acceptable_is_an_error_that_lists_what_is(accept: str) -> None:
    with pytest.raises(RefusedRequestError, match="text/csv"):
        representation(accept)


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        (None, "identity"),
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("zstd;q=0, gzip;q=0.1", "gzip"),
        ("*", "zstd"),
        ("identity, gzip;q=0.5", "identity"),
        ("br", "identity"),
        ("gzip;q=0", "identity"),
    ],
)
def test_encoding_follows_q_values(accept_encoding: str | None, expected: str) -> None:
    assert coding(accept_encoding) == expected


def test_stored_answers_are_also_parquet_but_not_versioned() -> None:
    parquet = representation("application/vnd.apache.parquet", STORED_TYPES)
    assert (parquet.format, parquet.content_type) == ("parquet", "application/vnd.apache.parquet")
    assert representation("*/*", STORED_TYPES).format == "json"
    for accept in ("application/vnd.caraway.sql.v1+json", "application/vnd.x.sql.v1+json"):
        with pytest.raises(RefusedRequestError, match="parquet"):
            representation(accept, STORED_TYPES)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_serving.codings import coding


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


def test_only_what_is_offered_is_chosen() -> None:
    assert coding("zstd, gzip;q=0.1", ("gzip",)) == "gzip"
    assert coding("zstd", ("gzip",)) == "identity"


@settings(max_examples=100, derandomize=True)
@given(st.text(max_size=40))
def test_any_header_is_a_choice(header: str) -> None:
    assert coding(header) in ("identity", "gzip", "zstd")

"""Headers between callers and runtimes: no credential and no cookie of a caller crosses."""

import pytest

from caraway_management.passthrough import headers
from caraway_management.passthrough.headers import Header

HOSTILE = [
    b"authorization", b"Authorization", b"cookie", b"x-api-key", b"X-API-Key", b"host", b"Host",
    b"connection", b"transfer-encoding", b"te", b"upgrade", b"proxy-authorization", b"forwarded",
    b"x-forwarded-for", b"x-org-name", b"x-csrf-token", b"set-cookie", b"", b"accept ", b"\x00",
]  # fmt: skip


def names(found: list[Header]) -> list[bytes]:
    return [name.lower() for name, _ in found]


@pytest.mark.parametrize("name", HOSTILE)
def test_other_headers_stay_on_the_side_of_the_caller(name: bytes) -> None:
    found = headers.to_runtime([(name, b"secret")], "key")
    assert found == [(b"accept-encoding", b"identity"), (b"x-api-key", b"key")]


@pytest.mark.parametrize("name", [*HOSTILE, b"server", b"date", b"www-authenticate", b"location"])
def test_other_headers_stay_on_the_side_of_the_runtime(name: bytes) -> None:
    assert headers.to_caller([(name, b"x")]) == []


def test_key_of_the_caller_is_replaced_by_that_of_the_project() -> None:
    found = headers.to_runtime([(b"X-Api-Key", b"mine"), (b"X-API-KEY", b"mine")], "project")
    assert [value for name, value in found if name == b"x-api-key"] == [b"project"]


@pytest.mark.parametrize("name", [b"accept-encoding", b"Accept-Encoding", b"ACCEPT-ENCODING"])
def test_compression_is_what_the_caller_takes(name: bytes) -> None:
    found = headers.to_runtime([(name, b"gzip")], "k")
    assert names(found).count(b"accept-encoding") == 1 and (name, b"gzip") in found


def test_headers_of_content_pass_in_both_directions() -> None:
    sent = [(b"Content-Type", b"text/csv"), (b"content-length", b"7"), (b"TraceParent", b"00-a")]
    assert names(headers.to_runtime(sent, "k"))[:3] == [
        b"content-type", b"content-length", b"traceparent"
    ]  # fmt: skip
    assert headers.to_caller(sent) == [(name.lower(), value) for name, value in sent]
    assert headers.to_caller([(b"Retry-After", b"5")] * 2) == [(b"retry-after", b"5")] * 2


@pytest.mark.parametrize(
    ("received", "length"),
    [
        ([], -1),
        ([(b"content-length", b"0")], 0),
        ([(b"Content-Length", b"12")], 12),
        ([(b"content-length", b"x"), (b"content-length", b"3")], 3),
        ([(b"content-length", b"-1")], -1),
        ([(b"content-length", b"")], -1),
        ([(b"content-length", b" 5")], -1),
        ([(b"content-length", b"\xb2")], -1),
        ([(b"content-type", b"5")], -1),
    ],
)
def test_length_is_a_whole_number_or_none(received: list[Header], length: int) -> None:
    assert headers.length(received) == length

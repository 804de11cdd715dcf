"""Keys in the metadata of calls."""

import base64

import pytest

from caraway_serving.flight.credentials import Headers, credential

BASIC = base64.b64encode(b"user:pass:word").decode()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"authorization": ["Bearer k"]}, "k"),
        ({"x-api-key": ["k"], "authorization": ["Bearer other"]}, "k"),
        ({"authorization": [f"Basic {BASIC}"]}, "pass:word"),
        ({"authorization": [f"Basic {BASIC.rstrip('=')}"]}, "pass:word"),
        ({"authorization": ["Basic OmtleTEyMzQ1"]}, "key12345"),
        ({"authorization": ["Basic Omtl"]}, "ke"),
        ({"authorization": ["Basic OmtleQ"]}, "key"),
        ({"authorization": ["Basic %%%"]}, None),
        ({"authorization": ["Basic O"]}, None),
        ({"authorization": ["Basic"]}, None),
        ({"authorization": ["Digest k"]}, None),
        ({"auth-token-bin": [b"session"]}, "session"),
        ({"auth-token-bin": [b""]}, None),
    ],
)
def test_credential_comes_from_the_headers(headers: Headers, expected: str | None) -> None:
    assert (credential(headers) or None) == expected

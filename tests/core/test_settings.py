"""Addresses of servers are read strictly, and written back as they can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.settings import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("0.0.0.0:8090", "0.0.0.0", 8090), (":8090", "127.0.0.1", 8090), ("80", "127.0.0.1", 80),
        ("[::1]:80", "::1", 80), ("::1:80", "::1", 80), ("[fe80::1%eth0]:80", "fe80::1%eth0", 80),
        ("db-1.example.com:0", "db-1.example.com", 0), ("my_host:65535", "my_host", 65535),
        ("bücher.example:1", "bücher.example", 1),
    ],
)  # fmt: skip
def test_addresses(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert address == Address(host, port)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "host", "host:", "host:-1", "host:+1", "host: 80", "host:80 ", "host:65536",
        "host:٣", "host:" + "9" * 5_000, "9" * 5_000, "http://host:80", "host/x:80", "user@host:80",
        "a b:80", "host\n:80", "\0:80", "[]:80", "[::1:80", "::1]:80", "[[::1]]:80", "]:80",
        "host:0x50", "host:8_0",
    ],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address; write HOST:PORT") as caught:
        Address.parse(text)
    assert len(str(caught.value)) < 300


@given(st.text(max_size=12))
def test_any_text_is_an_address_or_none(text: str) -> None:
    try:
        address = Address.parse(text)
    except ValueError:
        return
    assert 0 <= address.port <= 65535 and address.host
    assert Address.parse(str(address)) == address

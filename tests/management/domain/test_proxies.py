import pytest

from caraway_core.errors import CarawayError
from caraway_management.domain import proxies

TRUSTED = proxies.read_networks(["10.0.0.0/8", "fd00::/8", "192.0.2.7"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # A client that is not a proxy may send any name.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        # Only the right-most address that is not a proxy was written by a proxy.
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1, 192.0.2.7"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["2001:db8::5"], "2001:db8::5"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::5]:4711"], "2001:db8::5"),
        # An entry that is not an address ends the search at the proxy that sent it.
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["", "<script>"], "10.0.0.1"),
        ("testclient", ["198.51.100.1"], "testclient"),
        ("10.0.0.1", ["1.1.1.1," * 10_000 + "10.0.0.2"], "1.1.1.1"),
    ],
)
def test_the_client_is_the_last_that_no_trusted_proxy_sent(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert proxies.client_address(peer, forwarded, TRUSTED) == client


@pytest.mark.parametrize("text", ["", "10.0.0.1/8", "proxy.example", "10.0.0.0/33"])
def test_networks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(CarawayError, match="--trusted-proxies"):
        proxies.read_networks([text])

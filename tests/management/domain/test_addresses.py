import ipaddress

import pytest

from caraway_management.domain import addresses
from caraway_management.domain.addresses import Outside
from caraway_management.domain.refusals import RefusedError

HOSTILE = [
    "",
    "example.com/hook",
    "http://example.com/hook",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "https://",
    "https:///path",
    "https://user@example.com/",
    "https://user:password@example.com/",
    "https://@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com:0/",
    "https://example.com:22/",
    "https://example.com:8443/",
    "https://example.com:99999/",
    "https://example.com:x/",
    "https://example.com/#fragment",
    "https://example.com/a b",
    "https://example.com/\r\nHost: other",
    "https://example.com\\@127.0.0.1/",
    "https://example.com/" + "a" * 2_048,
    "https://ex\u00e4mple.com/",
    "https://\u2460\u2461\u2466.0.0.1/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://a.localhost/",
    "https://db.internal/",
    "https://metadata.google.internal/",
    "https://printer.local/",
    "https://router/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://0/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://100.100.100.200/",
    "https://192.0.2.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[::]/",
    "https://[::1]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[::1/",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_hostile_urls_are_refused(url: str) -> None:
    with pytest.raises(RefusedError) as refused:
        addresses.check_url(url, Outside(), "url")
    assert (refused.value.status, refused.value.code) == (400, "url_not_allowed")
    assert "password" not in refused.value.message or "must not contain" in refused.value.message


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook?a=1",
        "https://example.com:443/",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://xn--exmple-cua.com/",
    ],
)
def test_public_urls_are_taken(url: str) -> None:
    assert addresses.check_url(url, Outside(), "url").scheme == "https"


def test_an_installation_may_allow_its_own_network() -> None:
    inside = Outside(allows_inside=True)
    for url in ("http://127.0.0.1:8080/hook", "https://db.internal/", "http://[::1]:9/"):
        assert addresses.check_url(url, inside, "url").hostname
    for url in ("file:///etc/passwd", "http://user@db.internal/", "http://2130706433/"):
        with pytest.raises(RefusedError):
            addresses.check_url(url, inside, "url")


@pytest.mark.parametrize(
    ("text", "is_public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("100.127.255.255", False),
        ("169.254.169.254", False),
        ("::ffff:8.8.8.8", False),
        ("64:ff9b::a00:1", False),
        ("fd12::1", False),
        ("239.1.1.1", False),
        ("0.0.0.0", False),
    ],
)
def test_which_addresses_are_public(text: str, is_public: bool) -> None:
    assert addresses.is_public(ipaddress.ip_address(text)) is is_public

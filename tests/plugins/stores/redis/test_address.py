"""The URL of a Redis: its parts, and errors without its password."""

import ssl

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.stores.redis import address


@pytest.mark.parametrize(
    ("url", "name", "connection"),
    [
        ("redis://", "redis://localhost:6379/0", {"host": "localhost", "port": 6379, "db": 0}),
        ("redis://h", "redis://h:6379/0", {"host": "h", "port": 6379, "db": 0}),
        ("redis://h:1/", "redis://h:1/0", {"host": "h", "port": 1, "db": 0}),
        ("redis://h/7", "redis://h:6379/7", {"host": "h", "port": 6379, "db": 7}),
        ("redis://h/7?db=3", "redis://h:6379/3", {"host": "h", "port": 6379, "db": 3}),
        ("redis://[::1]:2/1", "redis://[::1]:2/1", {"host": "::1", "port": 2, "db": 1}),
        ("unix:///run/a@b.sock", "unix:///run/a@b.sock", {"path": "/run/a@b.sock", "db": 0}),
        ("unix:///s?db=4", "unix:///s", {"path": "/s", "db": 4}),
        ("redis://:p%40%2F@h", "redis://h:6379/0",
         {"host": "h", "port": 6379, "db": 0, "password": "p@/"}),
        ("redis://u%3A:p@h", "redis://h:6379/0",
         {"host": "h", "port": 6379, "db": 0, "username": "u:", "password": "p"}),
    ],
)  # fmt: skip
def test_a_url_says_where_and_how_to_connect(
    url: str, name: str, connection: dict[str, object]
) -> None:
    found = address.parse(url)
    assert (found.name, found.connection) == (name, connection)
    assert (found.prefix, found.durability) == ("caraway:", "always")
    assert "p@/" not in repr(found)


def test_tls_checks_the_certificate_always() -> None:
    found = address.parse("rediss://h?ca=/ca.pem&prefix=mine&durability=any")
    assert found.connection["ssl_cert_reqs"] is ssl.CERT_REQUIRED
    assert found.connection["ssl_check_hostname"] is True
    assert found.connection["ssl_ca_certs"] == "/ca.pem"
    assert (found.prefix, found.durability) == ("mine:", "any")
    assert "ssl_ca_certs" not in address.parse("rediss://h").connection


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://u:hidden@h", "scheme 'mysql' is not one of redis, rediss, unix"),
        ("u:hidden@h", "written as a code"),
        ("//u:hidden@h", "scheme '' is not one of"),
        ("redis:u:hidden@h", "written as a code"),
        ("redis://u:hid/den@h:6379/0", "/ as %2F"),
        ("redis://u:12/hidden@h", "/ as %2F"),
        ("redis://u:hid?den@h", "? as %3F"),
        ("redis://u:12#hidden@h", "# as %23"),
        ("redis://u:hidden@[h", "it cannot be split into its parts"),
        ("redis://u:hidden@h\u2100h", "it cannot be split into its parts"),
        ("redis://u:hidden@h:x", "its port is not a number from 1 to 65535"),
        ("redis://u:hidden@h:0", "its port is not a number from 1 to 65535"),
        ("redis://u:hidden@h:65536", "its port is not a number from 1 to 65535"),
        ("redis://u:hidden@h/x", "database 'x' is not a number"),
        ("redis://u:hidden@h/-1", "database '-1' is not a number"),
        ("redis://u:hidden@h/\u0661", "database '\u0661' is not a number"),
        ("redis://u:hidden@h?durable=1", "unknown parameter 'durable'; known: ca, db"),
        ("redis://u:hidden@h?durability=no", "durability must be one of always, any"),
    ],
)
def test_a_wrong_url_is_explained_without_its_password(url: str, says: str) -> None:
    with pytest.raises(CarawayError) as caught:
        address.parse(url)
    assert says in caught.value.message
    for part in ("hidden", "hid/", "hid?", "den@", "'hid'"):
        assert part not in caught.value.message

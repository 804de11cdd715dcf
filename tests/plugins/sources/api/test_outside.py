"""Hosts that a server may send a reader on to."""

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import outside
from caraway_plugins.sources.api.calls import ApiCall

PUBLIC = "https://93.184.215.14/x"


@pytest.mark.parametrize(
    "url",
    [
        "http://93.184.215.14/x",
        "https://127.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://10.1.2.3/x",
        "https://[::1]/x",
        "https://[fd00::1]/x",
        "https://0x7f000001/x",
    ],
)
def test_a_public_server_does_not_lead_inside(url: str) -> None:
    with pytest.raises(DatasetError) as caught:
        outside.check(PUBLIC, url, "api")
    assert caught.value.type == "invalid"


def test_other_public_hosts_and_hosts_beside_one_inside_are_read() -> None:
    outside.check(PUBLIC, "https://93.184.215.15/x", "api")
    outside.check("http://127.0.0.1/x", "http://10.1.2.3/x", "api")


@pytest.mark.parametrize(
    ("url", "is_home"),
    [
        ("https://api.example/other", True),
        ("https://api.example:443/x", True),
        ("https://api.example:8443/x", False),
        ("http://api.example/x", False),
        ("https://example/x", False),
        ("https://api.example.evil/x", False),
    ],
)
def test_only_the_host_of_the_manifest_is_home(url: str, is_home: bool) -> None:
    assert ApiCall("https://api.example/x", url).is_home == is_home


def test_https_of_the_same_host_is_home() -> None:
    assert ApiCall("http://api.example/x", "https://api.example/x").is_home

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import GcsStore
from caraway_core.security import secret_urls

SECRET = st.from_regex(r"[A-Z0-9]{8}[/?#@:%\[ ][A-Z0-9]{8}", fullmatch=True)


@pytest.mark.parametrize(
    "url",
    [
        "redis://host",
        "redis://:pa%2Fss%40@host:6379/3?prefix=a",
        "redis://user:p@ss@host:1",
        "rediss://[::1]:65535/0?ca=/etc/some@where.pem",
        "unix:///run/redis@1/redis.sock?db=2",
        "REDIS://h",
    ],
)
def test_urls_are_split(url: str) -> None:
    assert secret_urls.split(url) == urlsplit(url)


@given(
    SECRET,
    st.sampled_from(
        [
            "redis://:{}@host:6379/0",
            "redis://user:12/{}@host",
            "redis://user:{}@host?db=1",
            "redis:user:{}@host",
            "redis://user:x?{}@host/0",
            "redis://user:x#{}@host/0",
            "redis://user:{}@ho\u2100st",
            "redis://user:{}@host:port",
            "redis://user:{}@[host",
            "redis://user:{}@host:0",
            "redis://user:{}@host:65536",
        ]
    ),
)
def test_an_error_shows_nothing_of_the_secret(secret: str, form: str) -> None:
    try:
        parts = secret_urls.split(form.format(secret))
    except ValueError as exc:
        assert not any(piece in str(exc) for piece in (secret[:8], secret[-8:]))
        assert exc.__context__ is None or exc.__suppress_context__
    else:
        shown = (parts.scheme, parts.path, parts.query, parts.hostname, parts.port)
        assert not any(piece in str(shown) for piece in (secret[:8], secret[-8:]))


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:pass/word@db.test",
        "redis://user:12/pass@db.test",
        "redis://user:12#pass@db.test",
        "redis://user:pass?word@db.test",
        "redis://user:pass@[db.test",
        "redis://user:pass@db.test:x",
    ],
)
def test_the_state_of_a_head_says_what_is_wrong_with_its_url(url: str) -> None:
    with pytest.raises(CarawayError, match=r"the URL of the state store is invalid") as caught:
        GcsStore.parse(url)
    assert "pass" not in caught.value.message.replace(":PASSWORD@", "").replace("password", "")

"""The URL of the state of a head: what Ray is told, and what is refused without its secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_core.ray_nodes.redis import GcsStore


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h", GcsStore("h:6379")), ("redis://h:1/0", GcsStore("h:1")),
        ("rediss://h:1", GcsStore("rediss://h:1")), ("redis://:p@h", GcsStore("h:6379", "", "p")),
        ("redis://u@h", GcsStore("h:6379", "u")), ("REDIS://H", GcsStore("h:6379")),
        ("redis://u:p%40%2F%23@h:1", GcsStore("h:1", "u", "p@/#")),
        ("redis://h?prefix=mine", GcsStore("h:6379", prefix="mine")),
        ("redis://h?prefix=", GcsStore("h:6379")), ("redis://h?other=1", GcsStore("h:6379")),
    ],
)  # fmt: skip
def test_urls(url: str, expected: GcsStore) -> None:
    assert GcsStore.parse(url) == expected


@pytest.mark.parametrize(
    "url",
    ["", "h", "h:6379", "redis://", "redis://:hunter2@", "http://hunter2@h", "redis:h",
     "redis://h:x", "redis://h:0", "redis://h:99999", "redis://[::1", "redis://u:hunter2/x@h",
     "redis://u:hunter2#@h", "redis://h#hunter2", "redis://u:hunter2?x@h"],
)  # fmt: skip
def test_what_is_no_redis(url: str) -> None:
    with pytest.raises(CarawayError, match="write redis://") as caught:
        GcsStore.parse(url)
    assert "hunter2" not in caught.value.message


@given(st.text(st.sampled_from("redis:/@h?#[]%1x \n"), max_size=16))
def test_any_text_is_a_url_or_none(text: str) -> None:
    for url in (text, f"redis://{text}"):
        try:
            store = GcsStore.parse(url)
        except CarawayError:
            continue
        host, _, port = store.address.rpartition(":")
        assert host and 0 < int(port) <= 65535


def test_a_password_is_only_in_the_environment() -> None:
    store = GcsStore.parse("redis://me:hunter2@h")
    assert "hunter2" not in repr(store)
    assert store.environment() == {
        "RAY_REDIS_ADDRESS": "h:6379", "RAY_external_storage_namespace": "caraway",
        "CARAWAY_REDIS_PASSWORD": "hunter2",
    }  # fmt: skip
    assert "CARAWAY_REDIS_PASSWORD" not in GcsStore("h:1").environment()


def test_a_redis_that_is_away() -> None:
    with pytest.raises(CarawayError, match=r"cannot reach the Redis at 127\.0\.0\.1:9: "):
        GcsStore("127.0.0.1:9").require()

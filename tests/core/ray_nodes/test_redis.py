"""The URL of the state of a head: Ray's arguments, and errors without its secrets."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import redis
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


@pytest.mark.parametrize(
    ("answer", "cause"),
    [(b"+PONG\r\n", ""), (b"-NOAUTH Authentication required.\r\n", ""),
     (b"-LOADING Redis is loading the dataset in memory\r\n", "it loads its data"),
     (b"", "it closed the connection")],
)  # fmt: skip
def test_a_redis_is_ready_when_it_answers_commands(answer: bytes, cause: str) -> None:
    with answering(answer) as store:
        if not cause:
            return store.require()
        with pytest.raises(CarawayError, match=f"is not ready: {cause}"):
            store.require()


def test_a_redis_that_is_paused_accepts_connections_but_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis, "_ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as paused:
        with pytest.raises(CarawayError, match=r"cannot reach the Redis at .*timed out"):
            GcsStore(f"127.0.0.1:{paused.getsockname()[1]}").require()


def test_a_redis_with_tls_that_refuses_us_is_ready() -> None:
    with answering(b"\x15\x03\x03\x00\x02\x02\x28", "rediss://") as store:
        store.require()


@contextmanager
def answering(answer: bytes, scheme: str = "") -> Iterator[GcsStore]:
    """A server that answers the first message of a connection with these bytes."""

    def serve(listener: socket.socket) -> None:
        end, _ = listener.accept()
        with end:
            end.recv(4096)
            end.sendall(answer)
            end.shutdown(socket.SHUT_WR)
            while end.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield GcsStore(f"{scheme}127.0.0.1:{listener.getsockname()[1]}")
        finally:
            thread.join()

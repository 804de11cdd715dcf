"""Behaviour that only servers have: outages, restarts, refusals, data loss and URLs."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis import exceptions

from caraway_core.errors import CarawayError, StateAwayError, StateFullError, StateUnsureError
from caraway_core.protocols.state import StateEntry
from caraway_plugins.stores.redis import RedisStateStore, address, durability, errors, lane
from tests.kit import proxies, valkey
from tests.kit.certificates import make_certificate
from tests.kit.proxies import Proxy
from tests.plugins.stores.adapters import POLL_S

WAIT_S = 60.0


@pytest.fixture
def server() -> Iterator[valkey.Server]:
    with valkey.serving() as server:
        yield server


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[RedisStateStore]:
    store = RedisStateStore(url, poll_s=POLL_S)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def behind_proxy(server: valkey.Server) -> AsyncIterator[tuple[RedisStateStore, Proxy]]:
    async with (
        proxies.proxying(server.socket) as proxy,
        opened(f"redis://127.0.0.1:{proxy.port}") as store,
    ):
        yield store, proxy


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    server: valkey.Server,
) -> None:
    acknowledged: dict[str, int] = {}
    offsets: list[int] = []
    going_on = asyncio.Event()

    async def write(store: RedisStateStore, writer: int) -> None:
        number = 0
        while not (going_on.is_set() and number > 50):
            key = f"{writer}/{number}"
            revision = await store.compare_and_set(key, b"x", expected=None)
            assert revision is not None, f"{key} was written twice"
            acknowledged[key] = revision
            offsets.append(await store.append("log", key.encode()))
            number += 1

    async with opened(server.url) as store, asyncio.TaskGroup() as writers:
        tasks = [writers.create_task(write(store, writer)) for writer in range(4)]
        for _ in range(3):
            before = len(acknowledged)
            while len(acknowledged) < before + 20:
                await asyncio.wait(tasks, timeout=0.01)
            server.kill()
            server.start()
        going_on.set()
    async with opened(server.url) as store:
        standing = {entry.key: entry.revision for entry in await store.scan("")}
        records = await store.read_log("log", 0, 1_000_000)
    assert standing == acknowledged
    assert sorted(offsets) == list(range(len(records)))
    assert sorted(records) == sorted(key.encode() for key in acknowledged)


async def test_watch_goes_on_over_a_restart_and_misses_nothing(server: valkey.Server) -> None:
    async with opened(server.url) as store, opened(server.url) as other:
        watcher = store.watch("a/")
        await store.scan("a/")
        await other.compare_and_set("a/1", b"1", expected=None)
        waiting = asyncio.ensure_future(anext(watcher))
        server.kill()
        server.start()
        await other.compare_and_set("a/2", b"2", expected=None)
        found = [await asyncio.wait_for(waiting, WAIT_S)]
        found.append(await asyncio.wait_for(anext(watcher), WAIT_S))
        assert [entry.key for entry in found] == ["a/1", "a/2"]


async def test_watch_outlasts_a_server_that_is_away_for_long(
    server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "GIVE_UP_S", 0.0)
    async with behind_proxy(server) as (store, proxy), opened(server.url) as other:
        watcher = store.watch("a")
        await store.get("a")
        proxy.is_up = False
        proxy.cut()
        waiting = asyncio.ensure_future(anext(watcher))
        with pytest.raises(CarawayError, match="check that the server runs"):
            await store.append("log", b"x")
        await other.compare_and_set("a", b"1", expected=None)
        proxy.is_up = True
        entry = await asyncio.wait_for(waiting, WAIT_S)
        assert (entry.key, entry.value) == ("a", b"1")


async def test_write_whose_answer_was_lost_is_done_once(server: valkey.Server) -> None:
    async with behind_proxy(server) as (store, proxy):
        assert await store.append("log", b"first") == 0
        proxy.answers_to_swallow = b"second"
        assert await store.append("log", b"second") == 1
        assert proxy.answers_to_swallow is None
        assert await store.read_log("log", 0, 10) == [b"first", b"second"]
        proxy.answers_to_swallow = b"value"
        revision = await store.compare_and_set("key", b"value", expected=None)
        assert proxy.answers_to_swallow is None
        assert revision is not None
        assert await store.get("key") == StateEntry("key", b"value", revision)


@pytest.mark.parametrize("write", ["append", "compare_and_set"])
async def test_write_that_was_sent_and_not_answered_may_be_done(
    server: valkey.Server, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    async with behind_proxy(server) as (store, proxy), opened(server.url) as other:
        assert await store.append("log", b"first") == 0
        monkeypatch.setattr(lane, "GIVE_UP_S", 0.0)
        proxy.answers_to_swallow = b"second"
        with pytest.raises(StateUnsureError, match="check that the server runs"):
            if write == "append":
                await store.append("log", b"second")
            else:
                await store.compare_and_set("key", b"second", expected=None)
        assert len(await other.read_log("log", 0, 10)) + len(await other.scan("key")) == 2


async def test_read_that_is_not_answered_has_changed_nothing(
    server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind_proxy(server) as (store, proxy):
        await store.check()
        monkeypatch.setattr(lane, "GIVE_UP_S", 0.0)
        proxy.answers_to_swallow = b"key"
        with pytest.raises(StateAwayError) as caught:
            await store.get("key")
        assert proxy.answers_to_swallow is None
        assert type(caught.value) is StateAwayError


async def test_write_to_a_server_that_cannot_be_reached_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "GIVE_UP_S", 0.1)
    with valkey.serving() as server:
        async with opened(server.url) as store:
            await store.append("log", b"first")
            server.kill()
            with suppress(StateAwayError):
                await store.append("log", b"perhaps")
            with pytest.raises(StateAwayError) as caught:
                await store.append("log", b"never")
            assert type(caught.value) is StateAwayError


async def test_server_that_forgot_the_script_is_given_it_again(server: valkey.Server) -> None:
    async with opened(server.url) as store:
        await store.append("log", b"1")
        server.command("SCRIPT", "FLUSH")
        assert await store.append("log", b"2") == 1


async def test_absent_server_is_named_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "GIVE_UP_S", 0.1)
    async with opened(f"unix://user:geheim@{tmp_path}/none.sock") as store:
        with pytest.raises(CarawayError) as caught:
            await store.check()
    assert f"state store unix://{tmp_path}/none.sock: " in caught.value.message
    assert "check that the server runs" in caught.value.message
    assert "geheim" not in caught.value.message


async def test_closing_does_not_wait_for_a_server_that_is_away(tmp_path: Path) -> None:
    store = RedisStateStore(f"unix://{tmp_path}/none.sock")
    waiting = asyncio.ensure_future(store.get("a"))
    await asyncio.wait([waiting], timeout=0)
    await asyncio.wait_for(store.aclose(), 60)
    with pytest.raises(CarawayError):
        await waiting


async def test_password_is_required(server: valkey.Server) -> None:
    server.config(requirepass="s3cr:t/@")
    async with opened(server.url) as store:
        with pytest.raises(CarawayError, match="correct user and password"):
            await store.get("a")
    async with opened(f"unix://:wrong@{server.socket}") as store:
        with pytest.raises(CarawayError, match="correct user and password") as caught:
            await store.get("a")
        assert "wrong@" not in caught.value.message
    async with opened(f"unix://:s3cr%3At%2F%40@{server.socket}") as store:
        assert await store.check() == ()
        assert await store.get("a") is None


async def test_databases_and_prefixes_stay_apart(server: valkey.Server) -> None:
    urls = [f"{server.url}?db=1", f"{server.url}?db=2", f"{server.url}?db=2&prefix=other"]
    for number, url in enumerate(urls):
        async with opened(url) as store:
            assert await store.scan("") == []
            assert await store.append("log", b"%d" % number) == 0
            await store.compare_and_set("a", b"x", expected=None)


async def test_tls_with_an_authority_of_its_own(server: valkey.Server, tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, is_authority=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    async with proxies.proxying(server.socket, context) as proxy:
        async with opened(f"rediss://127.0.0.1:{proxy.port}?ca={certificate}") as store:
            assert await store.check() == ()
        async with opened(f"rediss://127.0.0.1:{proxy.port}") as store:
            with pytest.raises(CarawayError, match="certificate"):
                await store.check()


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"appendonly": "no"}, "appendonly no"),
        ({"appendfsync": "everysec"}, "appendfsync everysec"),
        ({"maxmemory": "100mb", "maxmemory_policy": "allkeys-lru"}, "allkeys-lru"),
    ],
)
async def test_server_that_may_lose_writes_is_refused_unless_allowed(
    server: valkey.Server, settings: dict[str, str], fault: str
) -> None:
    server.config(**settings)
    async with opened(server.url) as store:
        with pytest.raises(CarawayError, match="appendfsync always") as caught:
            await store.check()
        assert fault in caught.value.message
    async with opened(f"{server.url}?durability=any") as store:
        (warning,) = await store.check()
        assert fault in warning


async def test_server_that_hides_its_settings_is_warned_about(server: valkey.Server) -> None:
    server.command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config")
    async with opened(f"unix://app:pw@{server.socket}") as store:
        (warning,) = await store.check()
        assert "does not disclose its settings" in warning


async def test_rights_of_the_reference_suffice(server: valkey.Server) -> None:
    page = (Path(__file__).parents[3] / "docs" / "operate" / "README.md").read_text()
    rule = page.split("ACL SETUSER caraway ")[1].split("\n")[0].replace("PASSWORD", "pw")
    server.command("ACL", "SETUSER", "caraway", *rule.split())
    async with opened(f"unix://caraway:pw@{server.socket}") as store:
        assert await store.check() == ()
        revision = await store.compare_and_set("a", b"1", expected=None, ttl_s=10)
        assert revision is not None
        assert await store.compare_and_set("a", None, expected=revision) is not None
        assert await store.append("log", b"1") == 0
        assert await store.read_log("log", 0, 1) == [b"1"]
        assert await store.scan("") == []


async def test_user_without_rights_is_told(server: valkey.Server) -> None:
    server.command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+ping", "+client")
    async with opened(f"unix://app:pw@{server.socket}") as store:
        with pytest.raises(CarawayError, match="commands and keys"):
            await store.get("a")


async def test_full_server_is_told_and_recovers(server: valkey.Server) -> None:
    server.config(maxmemory="1")
    async with opened(server.url) as store:
        with pytest.raises(StateFullError, match="raise its maxmemory"):
            await store.append("log", b"x" * 1000)
        server.config(maxmemory="0")
        assert await store.append("log", b"x") == 0


@pytest.mark.parametrize(
    "reply",
    [
        "MISCONF Errors writing to the AOF file: No space left on device",
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
    ],
)
def test_server_on_a_full_disk_is_told(reply: str) -> None:
    found = errors.explained("redis://state", exceptions.ResponseError(reply))
    assert isinstance(found, StateFullError)
    assert "free space" in found.message


async def test_state_of_a_newer_caraway_is_refused(server: valkey.Server) -> None:
    server.command("HSET", "caraway:counters", "format", "2")
    async with opened(server.url) as store:
        with pytest.raises(CarawayError, match="format 2 is not the format 1"):
            await store.check()


async def test_expiry_goes_by_the_clock_of_the_server(server: valkey.Server) -> None:
    async with opened(server.url) as store:
        watcher = store.watch("")
        await store.compare_and_set("a", b"1", expected=None, ttl_s=1)
        found = [await asyncio.wait_for(anext(watcher), WAIT_S) for _ in range(2)]
        assert [entry.value for entry in found] == [b"1", b""]
        assert await store.get("a") is None


@pytest.mark.parametrize(
    ("url", "name", "expected"),
    [
        ("redis://h", "redis://h:6379/0", {"host": "h", "port": 6379, "db": 0}),
        ("redis://u:p%40@h:7/3", "redis://h:7/3",
         {"host": "h", "port": 7, "db": 3, "username": "u", "password": "p@"}),
        ("redis://:p@[::1]:7", "redis://[::1]:7/0",
         {"host": "::1", "port": 7, "db": 0, "password": "p"}),
        ("unix:///run/v.sock?db=2", "unix:///run/v.sock", {"path": "/run/v.sock", "db": 2}),
        ("rediss://h?ca=/ca.pem", "rediss://h:6379/0",
         {"host": "h", "port": 6379, "db": 0, "ssl_ca_certs": "/ca.pem",
          "ssl_check_hostname": True, "ssl_cert_reqs": ssl.CERT_REQUIRED}),
    ],
)  # fmt: skip
def test_urls(url: str, name: str, expected: dict[str, object]) -> None:
    found = address.parse(url)
    assert (found.name, found.connection) == (name, expected)
    assert (found.prefix, found.durability) == ("caraway:", "always")
    assert "p@" not in repr(found)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:6379", "scheme 'localhost'"),
        ("http://h", "scheme 'http' is not one of redis, rediss, unix"),
        ("redis://:geheim@h:x", "is invalid"),
        ("redis://:geheim@h/one", "database 'one' is not a number"),
        ("redis://:geheim@h?prefiks=x", "unknown parameter 'prefiks'; known: ca, db, durability"),
        ("redis://:geheim@h?durability=some", "one of always, any"),
    ],
)
def test_urls_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(CarawayError) as caught:
        RedisStateStore(url)
    assert message in caught.value.message
    assert "geheim" not in caught.value.message


def test_judgement_of_settings() -> None:
    good = {"appendonly": "yes", "appendfsync": "always", "maxmemory": "0"}
    assert durability.judge(good) == []
    assert durability.judge({**good, "maxmemory-policy": "allkeys-lfu"}) == []
    assert len(durability.judge({**good, "maxmemory": "1", "maxmemory-policy": "allkeys-lfu"})) == 1
    assert len(durability.judge({})) == 1


# Errors that only a bug of ours causes, or of parts of the client that are not used.
OURS = """ChildDeadlockedError ClusterError CrossSlotTransactionError DataError ExecAbortError
IncorrectPolicyType InvalidPipelineStack InvalidResponse LockError
LockNotOwnedError ModuleError NoScriptError NoSuchFieldsetError PubSubError RedisClusterException
RedisError ResponseError SlotNotCoveredError TryAgainError WatchError""".split()


def test_every_error_of_the_client_has_advice() -> None:
    kinds = [
        kind
        for kind in vars(exceptions).values()
        if isinstance(kind, type)
        and issubclass(kind, Exception)
        and kind.__module__ == exceptions.__name__
    ]
    without = []
    for kind in kinds:
        error = kind.__new__(kind)
        if "defect of Caraway" in errors.explained("redis://h", error).message:
            without.append(kind.__name__)
    assert sorted(without) == sorted(OURS)

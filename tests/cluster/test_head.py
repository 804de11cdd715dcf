"""The head, its restarts, and its wait for Redis."""

import asyncio
import itertools
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from caraway_cluster import head
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import GcsStore, NodeFailedError, NodeOptions, RayNode
from caraway_core.settings import Address, HeadOptions


async def test_the_head_waits_for_redis_to_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = iter([CarawayError("unreachable"), CarawayError("unreachable"), None])

    def require(_store: GcsStore) -> None:
        if (failure := next(tries)) is not None:
            raise failure

    monkeypatch.setattr(GcsStore, "require", require)
    with caplog.at_level(logging.WARNING):
        await head.wait_for(GcsStore("redis.test:6379"), delays=Delays(0, 0))
    assert [record.message for record in caplog.records] == ["waiting for Redis"]
    assert next(tries, "all") == "all"


async def test_the_wait_for_redis_is_bounded_and_names_the_address() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Bound, but not listening.
        port = held.getsockname()[1]
        with pytest.raises(CarawayError, match=f"cannot reach the Redis at 127.0.0.1:{port}"):
            await head.wait_for(GcsStore(f"127.0.0.1:{port}"), patience_s=0)


class FakeNode:
    """A node that exits with a code, or that stops the head when the head waits for it."""

    output = Path("ray.log")

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.is_stopped = False

    async def wait(self) -> int:
        if self.code is not None:
            return self.code
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def stop(self) -> None:
        self.is_stopped = True


class RunningNode(FakeNode):
    """A node that does not exit."""

    async def wait(self) -> int:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def options(folder: Path, store: GcsStore | None) -> tuple[NodeOptions, HeadOptions]:
    address = Address("127.0.0.1", 0)
    node = NodeOptions(head=address, joins=False, node_ip=None, cores=0, object_store_bytes=0,
                       folder=folder, token_file=folder / "token", store=store)  # fmt: skip
    return node, HeadOptions(address=address, data_dir=folder)


async def test_a_head_with_redis_restarts_in_the_same_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nodes: list[FakeNode | NodeFailedError] = [
        FakeNode(1), NodeFailedError("Redis is loading"), FakeNode(1), FakeNode(None)
    ]  # fmt: skip
    left, waited = list(nodes), 0

    def require(_store: GcsStore) -> None:
        nonlocal waited
        waited += 1

    monkeypatch.setattr(head, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(RayNode, "start", starting(left))
    monkeypatch.setattr(GcsStore, "require", require)

    await head._serve(*options(tmp_path, GcsStore("redis.test:6379")))

    assert (left, waited) == ([], 4)
    assert all(each.is_stopped for each in nodes if isinstance(each, FakeNode))


async def test_a_node_whose_watch_hangs_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, last = RunningNode(None), FakeNode(None)
    left: list[FakeNode | NodeFailedError] = [hanging, last]
    looks: list[Path] = []

    async def until_stuck(sign: Path) -> None:
        looks.append(sign)
        if len(looks) > 1:
            await asyncio.Event().wait()

    monkeypatch.setattr(head, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(RayNode, "start", starting(left))
    monkeypatch.setattr(GcsStore, "require", lambda _store: None)
    monkeypatch.setattr(head, "until_stuck", until_stuck)
    node, flags = options(tmp_path, GcsStore("redis.test:6379"))

    await head._serve(node, flags)

    assert hanging.is_stopped and last.is_stopped
    assert looks == [node.sign, node.sign]
    causes = [getattr(record, "cause", "") for record in caplog.records]
    assert causes == ["the watch of Ray's state server hangs; its output is in ray.log"]


async def test_a_head_without_redis_exits_with_its_node(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def start(_: NodeOptions) -> FakeNode:
        return FakeNode(1)

    monkeypatch.setattr(RayNode, "start", start)

    with pytest.raises(NodeFailedError, match="exited with code 1"):
        await head._serve(*options(tmp_path, None))


@pytest.mark.parametrize("store", [None, GcsStore("redis.test:6379")])
async def test_the_first_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: GcsStore | None
) -> None:
    left: list[FakeNode | NodeFailedError] = [
        NodeFailedError("the state server ended"), NodeFailedError("again"), FakeNode(None)
    ]  # fmt: skip
    monkeypatch.setattr(head, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(RayNode, "start", starting(left))
    monkeypatch.setattr(GcsStore, "require", lambda _store: None)

    await head._serve(*options(tmp_path, store))

    assert not left


async def test_a_first_start_that_fails_each_time_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left: list[FakeNode | NodeFailedError] = [NodeFailedError("wrong password")] * 9
    monkeypatch.setattr(head, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(RayNode, "start", starting(left))

    with pytest.raises(NodeFailedError, match="wrong password"):
        await head._serve(*options(tmp_path, None))
    assert len(left) == 9 - head._FIRST_TRIES


def starting(
    left: list[FakeNode | NodeFailedError],
) -> Callable[[NodeOptions], Coroutine[None, None, FakeNode]]:
    async def start(_: NodeOptions) -> FakeNode:
        found = left.pop(0)
        if isinstance(found, NodeFailedError):
            raise found
        return found

    return start


class Touched:
    """A clock that touches a file in the given rounds, with a time that never goes back."""

    def __init__(self, file: Path, rounds: set[int]) -> None:
        self._file = file
        self._rounds = rounds
        self._calls = itertools.count()
        self.round = 0

    def __call__(self) -> float:
        # Each round reads the clock at its start, and again if the file was not touched.
        self.round = next(self._calls)
        if self.round in self._rounds:
            self._file.touch()
            os.utime(self._file, ns=(self.round, self.round))
        return self.round * 5.0


@pytest.mark.parametrize(
    ("touched", "ends_at"),
    [
        pytest.param(set(), 7, id="a watch that never touched its file"),
        pytest.param({0, 1, 2, 5}, 13, id="a watch that hangs after some rounds"),
    ],
)
async def test_a_watch_that_no_longer_touches_its_file_is_stuck(
    tmp_path: Path, touched: set[int], ends_at: int
) -> None:
    clock = Touched(tmp_path / "watched", touched)
    await asyncio.wait_for(head.until_stuck(tmp_path / "watched", clock, 0, 20.0), 10)
    assert clock.round == ends_at


async def test_a_watch_that_touches_its_file_is_not_stuck(tmp_path: Path) -> None:
    clock = Touched(tmp_path / "watched", set(range(1000)))
    looking = asyncio.ensure_future(head.until_stuck(tmp_path / "watched", clock, 0, 20.0))
    while clock.round < 900:
        assert not looking.done()
        await asyncio.sleep(0)
    looking.cancel()


async def test_the_file_of_the_probe_is_touched_while_the_head_waits_for_redis(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits = asyncio.Event()
    loop = asyncio.get_running_loop()
    release = asyncio.Event()

    async def wait_for(_store: GcsStore, _patience_s: float) -> None:
        waits.set()
        await release.wait()

    monkeypatch.setattr(head, "wait_for", wait_for)
    monkeypatch.setattr(head, "_TOUCH_S", 0.0)
    node = NodeOptions(
        head=Address("127.0.0.1", 0), joins=False, node_ip=None, cores=0, object_store_bytes=0,
        folder=tmp_path / "ray", token_file=tmp_path / "token", store=GcsStore("redis.test:6379"),
    )  # fmt: skip
    serving = loop.create_task(head._serve(node, HeadOptions(node.head, tmp_path)))
    await waits.wait()
    alive = tmp_path / head.ALIVE
    for _ in range(2):
        alive.unlink(missing_ok=True)
        while not alive.exists():
            await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait((serving,))

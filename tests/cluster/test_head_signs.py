"""The signs of life of a head: of the watch of its state server, and of its event loop."""

import asyncio
import itertools
import os
from pathlib import Path

import pytest

from caraway_cluster import head, head_signs
from caraway_core.ray_nodes import GcsStore, NodeOptions
from caraway_core.settings import Address, HeadOptions


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
    await asyncio.wait_for(head_signs.until_stuck(tmp_path / "watched", clock, 0, 20.0), 10)
    assert clock.round == ends_at


async def test_a_watch_that_touches_its_file_is_not_stuck(tmp_path: Path) -> None:
    clock = Touched(tmp_path / "watched", set(range(1000)))
    looking = asyncio.ensure_future(head_signs.until_stuck(tmp_path / "watched", clock, 0, 20.0))
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
    monkeypatch.setattr(head_signs, "_TOUCH_S", 0.0)
    node = NodeOptions(
        head=Address("127.0.0.1", 0), joins=False, node_ip=None, cores=0, object_store_bytes=0,
        folder=tmp_path / "ray", token_file=tmp_path / "token", store=GcsStore("redis.test:6379"),
    )  # fmt: skip
    serving = loop.create_task(head._serve(node, HeadOptions(node.head, tmp_path)))
    await waits.wait()
    alive = tmp_path / head_signs.ALIVE
    for _ in range(2):
        alive.unlink(missing_ok=True)
        while not alive.exists():
            await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait((serving,))

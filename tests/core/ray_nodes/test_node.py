"""When a node that joins is started."""

import asyncio
import socket
from pathlib import Path

import pytest

from caraway_core.process import exiting
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode, node
from caraway_core.settings import Address


def joining(folder: Path, port: int) -> NodeOptions:
    return NodeOptions(head=Address("127.0.0.1", port), joins=True, node_ip=None, cores=0,
                       object_store_bytes=0, folder=folder, token_file=folder / "t")  # fmt: skip


async def test_a_node_is_started_when_its_head_listens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def begin(_: NodeOptions) -> RayNode:
        begun.set()
        raise NodeFailedError("begun")

    monkeypatch.setattr(node, "_LOOK_S", 0.0)
    monkeypatch.setattr(RayNode, "_begin", begin)
    looked = asyncio.Event()
    looks, loop = exiting.listens, asyncio.get_running_loop()

    def listens(address: Address) -> bool:
        found = looks(address)
        loop.call_soon_threadsafe(looked.set)
        return found

    monkeypatch.setattr(exiting, "listens", listens)
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))  # Bound, but not listening.
        starting = asyncio.ensure_future(RayNode.start(joining(tmp_path, head.getsockname()[1])))
        await looked.wait()
        assert not begun.is_set()
        head.listen()
        with pytest.raises(NodeFailedError, match="begun"):
            await starting


async def test_a_head_that_stays_away_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "_START_S", 0.0)
    monkeypatch.setattr(node, "_LOOK_S", 0.0)
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        port = head.getsockname()[1]
        with pytest.raises(NodeFailedError, match=f"the head at 127.0.0.1:{port} cannot be"):
            await RayNode.start(joining(tmp_path, port))

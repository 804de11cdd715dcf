"""The output of a Ray node is read to the end: a full pipe blocks the node."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from caraway_core.concurrency import tasks
from caraway_core.ray_nodes import RayNode

WAIT_S = 60.0
_PRINTS = "print('x' * 300_000); print('Ray runtime started.'); print('y' * 300_000)"


async def printing(folder: Path) -> RayNode:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PRINTS, stdout=asyncio.subprocess.PIPE
    )
    return RayNode(process, folder, socket.socket())


async def ended(node: RayNode) -> None:
    async with asyncio.timeout(WAIT_S):
        await node._is_up.wait()
        assert await node.wait() == 0
        await asyncio.wait((node._copying,))
    node._agent_port.close()


async def test_lines_of_any_length_are_copied(tmp_path: Path) -> None:
    """A line of more than 64 KiB ended the copying of the output."""
    node = await printing(tmp_path)
    await ended(node)
    assert len(node.output.read_bytes()) > 600_000


async def test_a_full_disk_does_not_keep_a_node_from_being_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ray.log").symlink_to("/dev/full")
    before = tasks.FAILURES["copy the output of a Ray node"]
    await ended(await printing(tmp_path))
    await asyncio.sleep(0)
    assert tasks.FAILURES["copy the output of a Ray node"] == before + 1
    assert "background work failed" in caplog.text

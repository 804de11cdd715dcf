"""The memory of a real process that receives many of the largest bodies at once."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.kit.processes import child

MIB = 1024 * 1024
SENDERS, SIZE = 16, 64 * MIB


@pytest.mark.full
def test_many_large_bodies_do_not_fill_the_memory(tmp_path: Path) -> None:
    """16 bodies of 64 MiB are 1 GiB; with room for 128 MiB the process stays far below that."""
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(
        "version: v1\nkind: Caraway\nname: bodies\n"
        "runtime: {http: {max_body_size: 64MiB, max_body_memory: 128MiB}}\n"
    )
    with child(tmp_path, manifest) as caraway:
        assert caraway.sql("SELECT 1 AS x").json() == [{"x": 1}]
        before = _peak(caraway.process.pid)
        statuses = asyncio.run(_send(f"http://{caraway.addresses['http']}"))
        # 408: on a busy machine the client itself may pause for too long.
        assert set(statuses) <= {400, 408, 503}
        # A body exists as bytes, a second time while it is joined, and as text.
        grown = _peak(caraway.process.pid) - before
        assert grown < 640 * MIB, f"{grown // MIB} MiB"
        assert caraway.sql("SELECT 1 AS x").json() == [{"x": 1}]


async def _send(url: str) -> list[int]:
    body = b'{"sql": "' + b"x" * (SIZE - 16)
    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
        headers = {"content-type": "application/json"}
        sent = (
            client.post(f"{url}/v1/queries", content=body, headers=headers) for _ in range(SENDERS)
        )
        return [each.status_code for each in await asyncio.gather(*sent)]


def _peak(pid: int) -> int:
    """Return the peak resident size of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no peak")

"""Supervised processes of a cluster on one machine."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from caraway_cluster import plan as plans
from caraway_cluster.folder import ClusterFolder
from caraway_cluster.plan import ClusterPlan, ProcessSpec
from caraway_cluster.process import SupervisedProcess

PLAN = ClusterPlan("m.yaml", 1, 1, 1, 1, 1.0, "127.0.0", 1, "", "", "", None, "text")
FOREVER = [sys.executable, "-c", "import signal; signal.pause()"]


class Board:
    def __init__(self) -> None:
        self.is_published = asyncio.Event()

    def publish_status(self) -> None:
        self.is_published.set()


def supervised(
    folder: Path, monkeypatch: pytest.MonkeyPatch, board: Board | None = None
) -> SupervisedProcess:
    monkeypatch.setattr(plans, "command", lambda *_: FOREVER)
    (folder / "logs").mkdir()
    spec = ProcessSpec("executor-1", "executor", "127.0.0.1")
    return SupervisedProcess(PLAN, spec, ClusterFolder(folder), board or Board())


async def test_stopping_a_process_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, start = supervised(tmp_path, monkeypatch), asyncio.create_subprocess_exec

    async def start_and_stop(*arguments: Any, **options: Any) -> Any:
        child = await start(*arguments, **options)
        await process.stop()
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_stop)
    async with asyncio.timeout(10):
        await process.keep_running()
    assert process.status.pid is None


async def test_stopping_a_running_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board()
    process = supervised(tmp_path, monkeypatch, board)
    running = asyncio.ensure_future(process.keep_running())
    async with asyncio.timeout(10):
        await board.is_published.wait()
        await process.stop()
        await running
    assert process.status.pid is None

"""Processes of a cluster on one machine, as their keeper starts and stops them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from caraway_cluster import plan as plans
from caraway_cluster.child import Child
from caraway_cluster.folder import ClusterFolder
from caraway_cluster.plan import ClusterPlan, Member

PLAN = ClusterPlan("m.yaml", 1, 1, 1, 1, 1.0, "127.0.0", 1, "", "", "", None, "text")
FOREVER = [sys.executable, "-c", "import signal; signal.pause()"]


def child(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    monkeypatch.setattr(plans, "command", lambda *_: FOREVER)
    (folder / "logs").mkdir()
    member = Member("executor-1", "executor", "127.0.0.1")
    return Child(PLAN, member, ClusterFolder(folder), lambda: None)


async def test_process_that_is_stopped_while_it_is_started_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, start = child(tmp_path, monkeypatch), asyncio.create_subprocess_exec

    async def stopped_meanwhile(*arguments: Any, **options: Any) -> Any:
        process = await start(*arguments, **options)
        await of.stop()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", stopped_meanwhile)
    async with asyncio.timeout(10):
        await of.keep()
    assert of.status.pid is None


async def test_process_that_runs_ends_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, begun = child(tmp_path, monkeypatch), asyncio.Event()
    of._on_change = begun.set
    keeping = asyncio.ensure_future(of.keep())
    async with asyncio.timeout(10):
        await begun.wait()
        await of.stop()
        await keeping
    assert of.status.pid is None

"""Measures the memory and CPU that an idle operator uses for a hundred clusters."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.report import Figure
from tests.kit.kube import Emulator, emulated
from tests.operator.processes import (
    OperatorProcess,
    create_cluster,
    operator_process,
    run_controllers,
    until_ready,
)

_CLUSTERS = 100
_READY_S, _SETTLE_S, _MEASURED_S = 300.0, 20.0, 60.0
_ATTEMPTS = 3
_GOAL_MIB, _GOAL_SHARE = 300.0, 0.1


def measure() -> list[Figure]:
    """Measure an operator process over a minute, with the API server in this process."""
    memory_mib, share = asyncio.run(_measured())
    return [
        Figure(f"memory of an operator with {_CLUSTERS} idle clusters; the goal",
               f"{memory_mib:.0f} MiB", f"{_GOAL_MIB:.0f} MiB", memory_mib / _GOAL_MIB, "≤ 1",
               memory_mib <= _GOAL_MIB),
        Figure(f"CPU of an operator with {_CLUSTERS} idle clusters; the goal",
               f"{share:.1%} of a core", f"{_GOAL_SHARE:.0%}", share / _GOAL_SHARE, "≤ 1",
               share <= _GOAL_SHARE),
    ]  # fmt: skip


async def _measured() -> tuple[float, float]:
    async with emulated() as api:
        run_controllers(api)
        names = [f"shop-{number}" for number in range(_CLUSTERS)]
        for name in names:
            create_cluster(api, name)
        with tempfile.TemporaryDirectory() as folder:
            for attempt in range(_ATTEMPTS):
                async with operator_process(api, Path(folder) / str(attempt)) as operator:
                    if found := await _measured_once(api, names, operator):
                        return found
    raise RuntimeError(f"the operator lost its Lease {_ATTEMPTS} times: the machine is too busy")


async def _measured_once(
    api: Emulator, names: list[str], operator: OperatorProcess
) -> tuple[float, float] | None:
    """Return memory and share of a core, or None if the operator lost its Lease and exited."""
    ended = asyncio.create_task(operator.process.wait())
    ready = asyncio.create_task(until_ready(api, names, _READY_S))
    try:
        await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            return None
        await ready
        await asyncio.wait({ended}, timeout=_SETTLE_S)
        if ended.done():
            return None
        began, cpu_s = time.monotonic(), operator.cpu_s
        await asyncio.wait({ended}, timeout=_MEASURED_S)
        if ended.done():
            return None
        return operator.memory_mib, (operator.cpu_s - cpu_s) / (time.monotonic() - began)
    finally:
        ready.cancel()
        ended.cancel()

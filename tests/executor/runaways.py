"""A process with products that were cancelled: `python -m tests.executor.runaways`.

It prints what a statement answers meanwhile. A cancelled product keeps its thread for minutes, so
it must not be in the process of the tests.
"""

import asyncio
import os

from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from tests.kit.engine import memory, snapshot

RUNAWAY = (
    "SELECT count(*) AS n FROM generate_series(1, 200000) a, generate_series(1, 200000) b "
    "WHERE a.value * b.value = -1"
)


async def main() -> None:
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": memory(k=[1])}))

    async def run_away() -> None:
        stream = await local.execute(new_query_id(), Statement(RUNAWAY, {}))
        async for _ in stream:
            pass

    runaways = [asyncio.create_task(run_away()) for _ in range(4)]
    await asyncio.wait(runaways, timeout=0.2)
    for runaway in runaways:
        runaway.cancel()
    await asyncio.wait(runaways)
    stream = await local.execute(new_query_id(), Statement("SELECT k FROM t", {}))
    print([batch.to_pylist() async for batch in stream], flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())

"""An executor whose threads are kept by native code: `python -m tests.executor.starvelings 100`.

It prints what statements and tasks answer meanwhile, and how long each took. Native code cannot be
stopped, so it must not be in the process of the tests. A second argument are seconds before that,
in which an executor starts its fork server.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import pyarrow as pa

from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.worker import Worker
from tests.kit.engine import memory
from tests.kit.fragments import rows_of, task
from tests.kit.workers import catalog, identity

LONG = "ab" * 30_000
HOSTILE = "SELECT max(levenshtein(s, reverse(s) || $1)) AS n FROM long"
"""Computes one value for many seconds, without a pause and without the interpreter."""
NUMBERS = pa.schema([("v", pa.int64())])
TEXTS = pa.schema([("s", pa.string())])


async def main(count: int, settling_s: float) -> None:
    worker = Worker(identity(), EngineSettings(2), is_relieved=True)
    worker.install(catalog({"t": memory(n=[1, 2, 3]), "long": memory(s=[LONG] * 100)}))

    await worker.describe("here")
    await asyncio.sleep(settling_s)

    async def answer(sql: str, **parameters: str) -> list[dict[str, Any]]:
        page = await worker.open(new_query_id(), Statement(sql, parameters), "here")
        return [row for batch in page.batches for row in batch.to_pylist()]

    async def added(number: int) -> list[dict[str, Any]]:
        asked = task(f"SELECT sum(v) + {number} AS n FROM $t", {"$t": NUMBERS})
        _, (table,) = await worker.run_task(asked, [rows_of("t", pa.table({"v": [1, 2, 3]}))])
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    async def hostile_task(text: str) -> None:
        asked = task(HOSTILE.replace("long", "$t").replace("$1", f"'{text}'"), {"$t": TEXTS})
        await worker.run_task(asked, [rows_of("t", pa.table({"s": [LONG] * 100}))])

    # Each has its own text, so that none is answered by what another one left.
    hostile: list[asyncio.Future[Any]]
    hostile = [asyncio.ensure_future(answer(HOSTILE, **{"1": each})) for each in "x"]
    hostile += [asyncio.ensure_future(hostile_task(each)) for each in "a"]
    took_s, answers = [], []
    for number in range(count):
        for asked in (answer(f"SELECT sum(n) + {number} AS n FROM t WHERE n > 0"), added(number)):
            began_s = time.monotonic()
            answers.append([*(await asked)[0].values()])
            took_s.append(time.monotonic() - began_s)
    unfinished = sum(not each.done() for each in hostile)
    print(json.dumps({"answers": answers, "unfinished": unfinished, "took_s": took_s}), flush=True)
    for each in hostile:
        each.cancel()
    await asyncio.wait(hostile)
    await worker.aclose()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))

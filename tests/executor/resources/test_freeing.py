"""A process returns the memory of a large statement that nothing uses any more.

Beside small statements it offers that memory to the system, and does not report it as in use.
"""

import json
import os
import subprocess
import sys

import pytest

from caraway_core.settings import ENGINE_VARIABLES

_MIB = 1024 * 1024
# A statement whose groups take memory in all threads of the engine.
PROGRAM = """
import asyncio, json
from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
import os
from caraway_executor.resources import freeing, usage
from caraway_executor.resources.memory_in_use import MemoryInUse, OwnMemory
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.local import LocalExecutor
from tests.kit.deadlines import eventually, until
from tests.kit.engine import snapshot

LARGE = '''
SELECT v % 3000000 AS k, count(*) AS n, max(CAST(v AS VARCHAR)) AS m
FROM (SELECT unnest(generate_series(1, 4000000)) AS v) GROUP BY 1 ORDER BY m DESC LIMIT 10
'''

SMALL = '''
SELECT v % 7 AS k, count(*) AS n FROM (SELECT unnest(generate_series(1, 999)) AS v) GROUP BY 1
'''

async def run(sql):
    async for _ in await executor.execute(new_query_id(), Statement(sql, {})):
        pass

async def run_small(end):
    while not end.is_set():
        await run(SMALL)

async def run_large_among_small():
    measured, end = MemoryInUse(TaskMemory(None), OwnMemory()), asyncio.Event()
    await run(SMALL)
    await measured.measure(0)
    small = [asyncio.ensure_future(run_small(end)) for _ in range(2)]
    await run(LARGE)
    grown = usage.anonymous_bytes(os.getpid()) - idle

    async def falls():
        return await measured.measure(1) < grown / 2

    await eventually(falls, "the memory in use falls beside small statements", 60)
    end.set()
    await asyncio.gather(*small)

executor = LocalExecutor(EngineSettings(2))
executor.install(snapshot({}))
def kept():
    return usage.kept_bytes(os.getpid())

idle = kept()
asyncio.run(run_large_among_small())
after = usage.anonymous_bytes(os.getpid())

def is_returned():
    freeing.give_back()
    return kept() - idle < (after - idle) / 2

until(is_returned, "memory is returned", 60)
print(json.dumps([idle, after, kept()]))
executor.close()
"""

# A sort, whose rows stay with the thread that made them. With one partition nothing is exchanged.
SORT = """
import asyncio, json, os, sys
from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.resources import freeing, usage
from caraway_executor.statements.local import LocalExecutor
from tests.kit.deadlines import until
from tests.kit.engine import snapshot

SORTED = '''
SELECT count(*) AS n, max(r) AS m FROM (SELECT row_number() OVER (ORDER BY b.v % 101, a.v) AS r
FROM (SELECT unnest(generate_series(1, 40000)) AS v) a
JOIN (SELECT unnest(generate_series(1, 20000)) AS v) b ON a.v % 200 = b.v % 200)
'''

async def run(sql):
    async for _ in await executor.execute(new_query_id(), Statement(sql, {})):
        pass

executor = LocalExecutor(EngineSettings(int(sys.argv[1])))
executor.install(snapshot({}))
def kept():
    return usage.kept_bytes(os.getpid())

asyncio.run(run("SELECT 1"))
idle = kept()
asyncio.run(run(SORTED))
after = kept()
# Heartbeats repeat this; a round reaches the threads that are free at that moment.
def is_returned():
    freeing.give_back()
    return kept() - idle < (after - idle) / 4

until(is_returned, "memory is returned", 60)
print(json.dumps([idle, after, kept()]))
executor.close()
"""


@pytest.mark.parametrize("partitions", [1, 2])
def test_all_threads_return_what_a_sort_left(partitions: int) -> None:
    environment = {**os.environ, **ENGINE_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", SORT, str(partitions)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    idle, after, left = json.loads(done.stdout)
    assert after - idle > 100 * _MIB, "the statement is too small to show anything"
    assert left - idle < (after - idle) / 4


def test_resident_memory_falls_after_a_large_statement() -> None:
    environment = {**os.environ, **ENGINE_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    idle, after, left = json.loads(done.stdout)
    assert after - idle > 150 * _MIB, "the statement is too small to show anything"
    assert left - idle < (after - idle) / 2

"""A process returns the memory of a large statement that nothing uses any more."""

import json
import os
import subprocess
import sys

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
from caraway_executor.statements.local import LocalExecutor
from tests.kit.deadlines import until
from tests.kit.engine import snapshot

LARGE = '''
SELECT v % 3000000 AS k, count(*) AS n, max(CAST(v AS VARCHAR)) AS m
FROM (SELECT unnest(generate_series(1, 4000000)) AS v) GROUP BY 1 ORDER BY m DESC LIMIT 10
'''

async def run():
    async for _ in await executor.execute(new_query_id(), Statement(LARGE, {})):
        pass

executor = LocalExecutor(EngineSettings(2))
executor.install(snapshot({}))
def kept():
    return usage.kept_bytes(os.getpid())

idle = kept()
asyncio.run(run())
after = usage.anonymous_bytes(os.getpid())

def is_returned():
    freeing.give_back()
    return kept() - idle < (after - idle) / 2

until(is_returned, "memory is returned", 60)
print(json.dumps([idle, after, kept()]))
executor.close()
"""


def test_resident_memory_falls_after_a_large_statement() -> None:
    environment = {**os.environ, **ENGINE_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    idle, after, left = json.loads(done.stdout)
    assert after - idle > 150 * _MIB, "the statement is too small to show anything"
    assert left - idle < (after - idle) / 2

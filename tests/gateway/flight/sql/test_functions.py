"""Functions of the manifest through Flight SQL: placeholders as arguments, prepared statements."""

from pathlib import Path
from typing import Any

from caraway_core.ids import ExecutorId
from caraway_core.manifest import load
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.dispatch.wrappers.functions import FunctionDispatch, ManifestFunctions
from tests.gateway.flight.serving import serving
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit.engine import memory, snapshot

MANIFEST = """
name: app
functions:
  - {name: twice, signature: {args: [{name: x, type: bigint}], returns: bigint}, body: x + x}
  - {name: above, kind: table, signature: {args: [{name: least, type: bigint}]},
     body: SELECT id FROM docs WHERE id > $least}
"""


async def test_statements_call_functions(tmp_path: Path) -> None:
    (tmp_path / "caraway.yaml").write_text(MANIFEST)
    functions = ManifestFunctions()
    functions.apply(load(tmp_path / "caraway.yaml"))
    inner = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("here"))
    await inner.install(snapshot({"docs": memory(id=[1, 2, 3])}))
    async with serving(dispatch=FunctionDispatch(inner, functions)) as server:
        rows = await drive(server, fetched("SELECT twice($1) AS n, id FROM above($2)", 4, 2))
        assert rows.to_pylist() == [{"n": 8, "id": 3}]

        def prepared(connection: Any) -> list[Any]:
            with connection.cursor() as cursor:
                sql = "SELECT id, twice(id) + twice(?) AS n FROM above(?) ORDER BY id"
                assert cursor.adbc_prepare(sql).names == ["$1", "$2"]
                found = []
                for values in ((1, 2), (5, 1)):
                    cursor.execute(sql, values)
                    found.append(cursor.fetchall())
                return found

        assert await drive(server, prepared) == [[(3, 8)], [(2, 14), (3, 16)]]

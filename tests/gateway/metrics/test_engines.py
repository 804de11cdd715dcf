from pathlib import Path

from caraway_core.protocols.engines import EngineReport, EngineStatus
from caraway_gateway.metrics import engines as engine_metrics
from caraway_serving.metric_families import Families
from tests.kit.runtime import running

MIB = 1024 * 1024


def status(engine: str, pid: int, memory_bytes: int, statements: int) -> EngineStatus:
    return EngineStatus(engine, pid, 1_000, memory_bytes, 9 * MIB, statements)


def test_processes_of_one_role_are_counted_together() -> None:
    report = EngineReport(
        (status("main", 1, 5, 1), status("main", 2, 7, 3), status("apart", 3, 2, 0)),
        {"memory": 2},
        {"memory": 1},
    )
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in engine_metrics.collect(report, Families(""))
        for sample in family.samples
    }
    assert found == {
        ("engine_memory_bytes", "main"): 12,
        ("engine_memory_bytes", "apart"): 2,
        ("engine_active_statements", "main"): 4,
        ("engine_active_statements", "apart"): 0,
        ("engine_ends_total", "memory"): 2,
        ("engine_refused_statements_total", "memory"): 1,
    }


async def test_table_lists_the_processes(tmp_path: Path) -> None:
    async with running(tmp_path, "runtime: {query: {memory_limit: 256MiB}}") as runtime:
        (row,) = (await runtime.sql("SELECT * FROM runtime.engines")).json()
        assert row["engine"] == "main" and row["statements"] == 1
        assert 0 < row["memory_bytes"] < row["limit_bytes"] == 704 * MIB
        assert Path(f"/proc/{row['pid']}").exists()


async def test_end_of_a_process_is_counted_with_its_cause(tmp_path: Path) -> None:
    async with running(tmp_path, "runtime: {query: {memory_limit: 256MiB}}") as runtime:
        answer = await runtime.sql("SELECT length(repeat('x', 2000000000))")
        assert answer.status_code == 500 and "is allowed" in answer.text
        await runtime.sql("SELECT length(repeat('x', 2000000000))")
        page = (await runtime.metrics.get("/metrics")).text.splitlines()
        # A silent process is replaced instead, and one that rests may be ended later as well.
        (ends,) = [line for line in page if line.startswith('engine_ends_total{cause="memory"}')]
        assert float(ends.split()[-1]) >= 1
        assert 'query_first_row_ms_count{protocol="http"}' not in page
        row, *_ = (await runtime.sql("SELECT error_message FROM runtime.task_history")).json()
        assert "is allowed" in row["error_message"]

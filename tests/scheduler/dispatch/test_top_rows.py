"""ORDER BY with LIMIT over a cluster: each task leaves its best rows, and the last stage merges."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.kit.clusters import in_process_cluster
from tests.kit.tables import parquet

ROWS = 400
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "tie": pa.array([n * 3 // ROWS for n in range(ROWS)], pa.int64()),
        "v": pa.array([None if n % 40 == 7 else (n * 37) % 101 for n in range(ROWS)], pa.int64()),
    }
)
LIMITS = [(5, 0), (25, 0), (3, 9), (4, ROWS - 2), (5, ROWS + 1), (0, 3)]


def ordered(*, descending: bool, nulls_first: bool) -> list[int]:
    """Return the ids by `tie` and `v`, then by `id`, as the statements below order them."""

    def key(row: dict[str, int | None]) -> tuple[object, ...]:
        v, is_null = row["v"], row["v"] is None
        value = 0 if v is None else (-v if descending else v)
        return row["tie"], is_null != nulls_first, value, row["id"]

    return [row["id"] for row in sorted(TABLE.to_pylist(), key=key)]


async def test_answers_are_those_of_all_rows_in_order(tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 4)}
    async with in_process_cluster(tmp_path, tables, executors=3) as cluster:
        for direction in ("ASC", "DESC"):
            for nulls in ("FIRST", "LAST"):
                ids = ordered(descending=direction == "DESC", nulls_first=nulls == "FIRST")
                for limit, offset in LIMITS:
                    answer = await cluster.execute(
                        f"SELECT id FROM t ORDER BY tie, v {direction} NULLS {nulls}, id "
                        f"LIMIT {limit} OFFSET {offset}"
                    )
                    assert answer["id"].to_pylist() == ids[offset : offset + limit]


async def test_ties_are_cut_at_the_limit(tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 4)}
    async with in_process_cluster(tmp_path, tables) as cluster:
        answer = await cluster.execute("SELECT tie FROM t ORDER BY tie DESC LIMIT 140")
        assert answer["tie"].to_pylist() == [2] * 133 + [1] * 7
        assert (await cluster.execute("SELECT id FROM t LIMIT 7")).num_rows == 7


async def test_tasks_without_rows_leave_none(tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 4)}
    async with in_process_cluster(tmp_path, tables, executors=3) as cluster:
        one = await cluster.execute("SELECT id FROM t WHERE id < 3 ORDER BY id DESC LIMIT 2")
        assert one["id"].to_pylist() == [2, 1]
        none = await cluster.execute("SELECT id FROM t WHERE id < 0 ORDER BY id LIMIT 2")
        assert none.num_rows == 0


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3 OFFSET 2",
            "the best 5 rows of each task, merged by c1 DESC NULLS FIRST, c0 ASC NULLS LAST",
        ),
        ("SELECT id FROM t LIMIT 7", "the best 7 rows of each task\n"),
        ("SELECT id FROM t ORDER BY id", "all rows"),
    ],
)
async def test_explain_says_what_each_task_leaves(sql: str, text: str, tmp_path: Path) -> None:
    tables = {"t": parquet(tmp_path / "t", TABLE, 4)}
    async with in_process_cluster(tmp_path, tables) as cluster:
        assert text in await cluster.explain(sql)

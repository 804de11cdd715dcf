"""A source may bring a kind of table that the packages do not know."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.tables import TableSpec, scanners
from caraway_engine.scans import tables
from tests.kit import squares
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory, rows, session
from tests.kit.squares import SquaresTable


@pytest.mark.parametrize("parts", [1, 3])
async def test_sql_reads_a_kind_of_its_own(parts: int) -> None:
    over = session({"t": SquaresTable(1000, parts), "m": memory(n=[3, 999, 5000])})
    sql = "SELECT sum(square) AS s, count(*) AS c FROM t WHERE n >= 998"
    assert await rows(over, sql) == [{"s": 998**2 + 999**2, "c": 2}]
    sql = "SELECT square FROM m JOIN t ON m.n = t.n ORDER BY square"
    assert await rows(over, sql) == [{"square": 9}, {"square": 999**2}]
    assert await rows(over, "SELECT count(*) AS c FROM t") == [{"c": 1000}]


async def test_executors_read_splits_of_a_kind_of_its_own(tmp_path: Path) -> None:
    squares.scanned.clear()
    sql = "SELECT n % 2 AS odd, sum(square) AS s, count(*) AS c FROM t GROUP BY n % 2 ORDER BY odd"
    async with in_process_cluster(tmp_path, {"t": SquaresTable(1000, 4)}) as cluster:
        assert "reads its share of t" in await cluster.explain(sql)
        found = (await cluster.execute(sql)).to_pylist()
    assert found == [
        {"odd": each, "s": sum(n**2 for n in range(each, 1000, 2)), "c": 500} for each in (0, 1)
    ]
    assert sorted(squares.scanned) == [
        "0 to 250", "250 to 500", "500 to 750", "750 to 1000",
    ]  # fmt: skip


async def test_kind_of_one_split_runs_whole(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path, {"t": SquaresTable(10)}) as cluster:
        assert "runs whole" in await cluster.explain("SELECT max(square) FROM t")
        assert (await cluster.execute("SELECT max(square) AS m FROM t")).to_pylist() == [{"m": 81}]


@dataclass(frozen=True, slots=True)
class _UnknownTable(TableSpec):
    schema: pa.Schema


def test_kind_without_a_scanner_is_refused() -> None:
    unknown = _UnknownTable(pa.schema([("n", pa.int64())]))
    with pytest.raises(LookupError, match="no scanner for tables of kind _UnknownTable"):
        scanners.of(unknown)
    with pytest.raises(LookupError):
        tables.build_table(unknown)

"""Readers of Parquet filter where few rows pass or rows are wide; the rows stay the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.tables import FileScan, FilesTable, TableSpec
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session
from tests.kit.tables import parquet

COUNT = 60_000
WIDE = pa.table({
    "id": range(COUNT),
    "k": [number % 20_000 for number in range(COUNT)],
    "few": [number % 3 for number in range(COUNT)],
    "page": [f"/page/{number * 7 % 997}" for number in range(COUNT)],
    **{f"t{place}": [f"{place} of {number}" for number in range(COUNT)] for place in range(12)},
})  # fmt: skip
ODD = pa.table({
    "n": [None if number % 5 == 0 else number % 90 for number in range(4_000)],
    "f": [float("nan") if number % 7 == 0 else -0.0 if number % 3 else number / 8
          for number in range(4_000)],
    "s": [None if number % 11 == 0 else str(number % 13) for number in range(4_000)],
    "d": pa.array([number % 40 for number in range(4_000)]).cast(pa.decimal128(21, 2)),
})  # fmt: skip
STATEMENTS = [
    "SELECT * FROM odd WHERE n = 3 ORDER BY f, s, d",
    "SELECT * FROM odd WHERE n IS NULL AND s <> '4' ORDER BY f DESC, s, d LIMIT 9",
    "SELECT f, s FROM odd WHERE n > 10 ORDER BY f NULLS FIRST, s LIMIT 700",
    "SELECT f, count(*) AS c FROM odd WHERE f > 1.5 GROUP BY f ORDER BY f, c",
    "SELECT f, count(*) AS c FROM odd WHERE f = 0 GROUP BY f ORDER BY f, c",
    "SELECT * FROM odd WHERE s LIKE '1%' OR d >= 39 ORDER BY d DESC, s DESC, n, f LIMIT 20",
    "SELECT d, min(s) AS s FROM odd WHERE n IN (1, 2, NULL) GROUP BY d ORDER BY d",
    "SELECT count(*) AS c FROM odd WHERE NOT (n = 4 AND s = '4')",
    "SELECT n, count(*) AS c FROM odd JOIN grown ON n = a WHERE d < 2 GROUP BY n ORDER BY n",
    "SELECT count(*) AS c FROM grown WHERE b = 5",
    "SELECT count(*) AS c, sum(a) AS a FROM grown WHERE b IS NULL AND a < 300",
    "SELECT a, b FROM grown WHERE a BETWEEN 190 AND 210 ORDER BY a",
]


def grown(folder: Path) -> FilesTable:
    """Write two files: the second has one column more, and a wider type."""
    folder.mkdir()
    one = pa.table({"a": pa.array(range(200), pa.int32())})
    other = pa.table({"a": pa.array(range(200, 400), pa.int64()), "b": [n % 9 for n in range(200)]})
    for number, each in enumerate((one, other)):
        pq.write_table(each, folder / f"{number}.parquet", row_group_size=50)
    paths = tuple(sorted(map(str, folder.glob("*.parquet"))))
    scan = FileScan("parquet", paths, other.schema, ".parquet", size_bytes=4_000, file_count=2)
    return FilesTable(other.schema, (scan,))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Session]:
    folder = tmp_path_factory.mktemp("early")
    tables: dict[str, TableSpec | str] = {
        "wide": parquet(folder / "wide", WIDE, 2),
        "odd": parquet(folder / "odd", ODD, 3),
        "grown": grown(folder / "grown"),
        "held": memory(k=list(range(COUNT))),
        "seen": "SELECT id, page, t1, t2, t3 FROM wide",
    }
    return lambda: session(tables)


@pytest.fixture(scope="module")
def of(made: Callable[[], Session]) -> Session:
    return made()


async def plan(of: Session, sql: str) -> str:
    found: str = (await rows(of, f"EXPLAIN {sql}"))[-1]["plan"]
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM wide WHERE page LIKE '%99%' ORDER BY id LIMIT 10", True),
        ("SELECT page, count(*) FROM wide WHERE k = 17 GROUP BY page", True),
        ("SELECT t1, t2, t3 FROM seen WHERE id = 17", True),
        ("SELECT page, count(*) FROM wide WHERE few = 1 GROUP BY page", False),
        ("SELECT page FROM wide WHERE page <> '' ORDER BY id LIMIT 10", False),
        ("SELECT count(*) FROM wide WHERE k = 17", False),
        ("SELECT * FROM wide WHERE k / few = 17", False),
        ("SELECT * FROM wide WHERE CAST(t1 AS BIGINT) = 17", False),
        ("SELECT * FROM wide WHERE upper(page) = 'X'", False),
        ("SELECT x.* FROM wide x JOIN wide y ON x.id = y.id WHERE x.k = 17", False),
        ("SELECT * FROM odd WHERE n = 17", False),
        ("SELECT * FROM held WHERE k = 17", False),
    ],
)
async def test_what_filters_early(of: Session, sql: str, expected: bool) -> None:
    assert ("FilterExec" in await plan(of, sql)) is not expected


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_the_rows_are_the_same(made: Callable[[], Session], sql: str) -> None:
    early, late = made(), made()
    early._statements.reruns.early_filters_pay = lambda *_: True
    late._statements.reruns.early_filters_pay = lambda *_: False

    assert "FilterExec" not in await plan(early, sql)
    assert "FilterExec" in await plan(late, sql)
    answer = await rows(late, sql)
    assert answer
    assert str(await rows(early, sql)) == str(answer)


async def test_a_crowd_filters_early_too(made: Callable[[], Session]) -> None:
    of = made()
    sql = "SELECT t1, t2, t3 FROM wide WHERE k = 17 ORDER BY id"
    answer: list[dict[str, Any]] = await rows(of, sql)
    with of.crowd.entered(0), of.crowd.entered(1), of.crowd.entered(2):
        assert of.crowd.is_dense
        assert await rows(of, sql) == answer
    (known,) = of._statements.reruns._running
    frame = of._statements.reruns._narrow(known)
    physical = frame.execution_plan().display_indent()
    assert "FilterExec" not in physical and "RepartitionExec" not in physical

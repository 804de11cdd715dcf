"""ORC files: types, columns that differ between files, names with points, damaged files."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import MemoryTable, scanners
from caraway_core.tables.scanners import RowRequest
from tests.kit.engine import rows, session
from tests.plugins.sources import reading

_MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, None], pa.int64()),
        "small": pa.array([1, -1, None, 32767, 0], pa.int16()),
        "price": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal(7), Decimal(0)],
                          pa.decimal128(15, 2)),
        "ratio": pa.array([0.0, -0.0, float("nan"), float("inf"), None], pa.float64()),
        "name": ["Ä", "it's", "", None, "a\nb"],
        "is_on": [True, False, None, True, False],
        "day": [date(2024, 2, 29), date(1900, 1, 1), None, date(2199, 12, 31), date(1970, 1, 1)],
        "at": pa.array([_MOMENT, None, _MOMENT, datetime(1970, 1, 1), _MOMENT],
                       pa.timestamp("ns")),
        "moment": pa.array([_MOMENT.replace(tzinfo=UTC)] * 5, pa.timestamp("ns", "UTC")),
        "raw": [b"\0", b"", None, b"\xff", b"a"],
        "tags": [["a", None], [], None, ["b"], ["c"]],
        "at_home": [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 2, "y": ""}, None],
    }
)  # fmt: skip
STATEMENTS = [
    "SELECT * FROM t",
    "SELECT name, id FROM t WHERE id >= 2 AND price < 5",
    "SELECT id FROM t WHERE name = 'it''s' OR name = '' OR name IS NULL",
    "SELECT id FROM t WHERE NOT is_on AND day > DATE '1969-12-31'",
    "SELECT id FROM t WHERE at = TIMESTAMP '2024-02-29 12:30:15.123456'",
    "SELECT id FROM t WHERE moment < TIMESTAMPTZ '2024-02-29T12:30:16Z'",
    "SELECT id, at_home.y FROM t WHERE at_home.x = 2",
    "SELECT id, tags[1] AS first FROM t WHERE tags[1] IS NOT NULL",
    "SELECT is_on, count(*), sum(small), max(name) FROM t GROUP BY is_on",
    "SELECT count(*) AS n FROM t",
    "SELECT id FROM t LIMIT 0",
]
Put = Callable[[str, pa.Table], Path]
Make = Callable[..., reading.Dataset]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, table: pa.Table) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        # The writer takes the first rows for the structs of a slice.
        orc.write_table(table.take(pa.array(range(table.num_rows), pa.int64())), content)
        path.write_bytes(content.getvalue())
        return path

    return write


@pytest.fixture
def dataset(tmp_path: Path) -> Make:
    def make(path: str, declared: list[pa.Field] | None = None, **params: str) -> reading.Dataset:
        return reading.Dataset("file", path, tmp_path, params, declared or ())

    return make


def refused(dataset: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        dataset.resolve()
    return caught.value


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_answers_are_those_over_the_rows(sql: str, put: Put, dataset: Make) -> None:
    put("d/1.orc", ROWS.slice(0, 2))
    put("d/2.orc", ROWS.slice(2))
    over = session({"t": dataset("d/").resolve()})
    expected = session({"t": MemoryTable(ROWS.schema, ROWS)})
    assert _sorted(await rows(over, sql)) == _sorted(await rows(expected, sql))


def _sorted(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, found))


def test_columns_that_differ_become_one_table(put: Put, dataset: Make) -> None:
    put("d/1.orc", pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    put("d/2.orc", pa.table({"c": [1.5], "a": pa.array([2**40], pa.int64())}))
    assert dataset("d/").rows() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2**40, "b": None, "c": 1.5},
    ]


def test_columns_that_conflict_are_named(put: Put, dataset: Make) -> None:
    put("d/1.orc", pa.table({"a": [1]}))
    put("d/2.orc", pa.table({"a": ["x"]}))
    error = refused(dataset("d/"))
    assert error.type == "schema"
    assert "2.orc" in str(error)
    table = dataset("d/", [pa.field("a", pa.string())])
    assert refused(table).type == "schema"


def test_declared_types_are_cast(put: Put, dataset: Make) -> None:
    put("a.orc", pa.table({"a": ["1", "2"]}))
    put("b.orc", pa.table({"a": ["1", "x"]}))
    declared = [pa.field("a", pa.int64()), pa.field("missing", pa.string())]
    assert dataset("a.orc", declared).rows() == [
        {"a": 1, "missing": None},
        {"a": 2, "missing": None},
    ]
    table = dataset("b.orc", declared).resolve()
    with pytest.raises(QueryError, match="column 'a' that does not fit int64"):
        list(scanners.of(table).scan(table, RowRequest(["a"])))


def test_names_with_points_and_names_without_quotes(put: Put, dataset: Make) -> None:
    put("a.orc", pa.table({"a.b": [1], "a": [{"b": 2}], "Order ID": [3]}))
    found = dataset("a.orc").rows('SELECT "a.b" AS x, a[\'b\'] AS y, "Order ID" AS z FROM t')
    assert found == [{"x": 1, "y": 2, "z": 3}]
    normal = dataset("a.orc", normalize_names="true")
    assert normal.rows("SELECT order_id FROM t") == [{"order_id": 3}]


def test_a_folder_is_a_column_and_the_other_files_are_not_opened(put: Put, dataset: Make) -> None:
    put("d/k=1/a.orc", pa.table({"a": [1]}))
    put("d/k=__HIVE_DEFAULT_PARTITION__/a.orc", pa.table({"a": [3]}))
    last = put("d/k=2/a.orc", pa.table({"a": [2]}))
    made = dataset("d/")
    assert made.rows() == [{"a": 1, "k": 1}, {"a": 2, "k": 2}, {"a": 3, "k": None}]
    table = made.resolve()
    last.unlink()
    assert reading.query(table, "SELECT a, k FROM t WHERE k = 1") == [{"a": 1, "k": 1}]
    assert reading.query(table, "SELECT k FROM t WHERE k IS NULL") == [{"k": None}]
    put("e/k=1/a.orc", pa.table({"k": [1]}))
    assert "partition folder" in str(refused(dataset("e/")))


def test_many_stripes_are_read(put: Put, dataset: Make, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(range(300_000)), "b": ["x" * 50] * 300_000})
    orc.write_table(table, str(tmp_path / "a.orc"), stripe_size=1_000_000)
    assert orc.ORCFile(str(tmp_path / "a.orc")).nstripes > 1
    found = dataset("a.orc").rows("SELECT count(*) AS n, sum(a) AS s FROM t")
    assert found == [{"n": 300_000, "s": 300_000 * 299_999 // 2}]


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_damaged_files_are_named(kept: int, put: Put, dataset: Make) -> None:
    path = put("a.orc", ROWS)
    path.write_bytes(path.read_bytes()[:kept])
    error = refused(dataset("a.orc"))
    assert error.type == "invalid"
    assert "a.orc' is damaged or is not an ORC file" in str(error)

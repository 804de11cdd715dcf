"""An INSERT into a folder is one file with all of its rows, or nothing."""

import errno
import gzip
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from caraway_core.errors import CarawayError, DiskFullError, ExecutionError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import MemoryTable
from caraway_engine.sessions import folder_inserts
from caraway_engine.sessions.folder_inserts import InsertingFiles
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.files import LocalFiles
from tests.kit.engine import memory, rows, session

FIRST = pa.table({"id": pa.array([1], pa.int64()), "v": ["a"]})
MANY = 1_000_000
BAD = f"SELECT value, CAST(1 / (value - {MANY - 10}) AS VARCHAR) FROM range({MANY})"
"""Fails near its end, after far more rows than wait in memory."""
KINDS = [
    "parquet",
    "json",
    *(f"{each} partitioned" for each in ("csv", "json", "arrow", "parquet")),
]


@dataclass
class Folder:
    """A dataset over a folder."""

    path: Path
    format: str
    request: SourceRequest

    @property
    def session(self) -> Session:
        return session({"t": LocalFiles().resolve(self.request), "big": memory(n=list(range(9)))})

    def files(self) -> set[Path]:
        return {each for each in self.path.rglob("*") if each.is_file()}

    async def insert(self, query: str) -> int:
        return await insert(self.session, query)

    async def count(self) -> int:
        (found,) = await rows(self.session, "SELECT count(*) AS n FROM t")
        return int(found["n"])


async def insert(of: Session, query: str) -> int:
    (found,) = await rows(of, f"INSERT INTO t {query}", writable=frozenset({TableName("t")}))
    return int(found["count"])


def folder(tmp_path: Path, format_: str, name: str = "", table: pa.Table = FIRST) -> Folder:
    """Return a folder with a file of the format."""
    path = tmp_path / "t"
    file = path / (name or f"a.{format_}")
    file.parent.mkdir(parents=True)
    lines = [f'{{"id":{each["id"]},"v":"{each["v"]}"}}\n' for each in table.to_pylist()[:1]]
    match format_:
        case "parquet":
            parquet.write_table(table, file)
        case "arrow":
            feather.write_feather(table, file, compression="uncompressed")
        case _:
            text = "".join(lines) if format_ == "json" else "id,v\n1,a\n"
            content = text.encode()
            file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    request = SourceRequest(
        TableName("t"), "file", f"{path}/", {"file_format": format_}, (), "read_write",
        tmp_path, tmp_path,
    )  # fmt: skip
    return Folder(path, format_, request)


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    format_, _, partitioned = request.param.partition(" ")
    return folder(tmp_path, format_, f"p=7/a.{format_}" if partitioned else "")


def query_of(made: Folder, query: str) -> str:
    is_partitioned = any(each.is_dir() for each in made.path.iterdir())
    return f"SELECT *, 8 FROM ({query})" if is_partitioned else query


async def test_a_statement_adds_one_file_with_its_rows(made: Folder) -> None:
    before = made.files()
    query = query_of(made, f"SELECT value, 'x' FROM range({MANY})")
    assert await made.insert(query) == MANY
    assert len(made.files() - before) == 1
    assert await made.count() == MANY + 1


@pytest.mark.parametrize("query", [BAD, "SELECT n, CAST(1 / (n - 5) AS VARCHAR) FROM big"])
async def test_a_statement_that_fails_adds_nothing(made: Folder, query: str) -> None:
    before = made.files()
    with pytest.raises(CarawayError, match="division by zero"):
        await made.insert(query_of(made, query))
    assert made.files() == before
    assert await made.count() == 1


async def test_rows_of_the_folder_itself_are_read_before(tmp_path: Path) -> None:
    made = folder(tmp_path, "parquet")
    for turn in range(4):
        assert await made.insert("SELECT id, v FROM t") == 2**turn
    assert await made.count() == 16


async def test_no_rows_are_no_file(tmp_path: Path) -> None:
    made = folder(tmp_path, "parquet")
    before = made.files()
    assert await made.insert("SELECT 1, 'x' WHERE false") == 0
    assert made.files() == before


@pytest.mark.parametrize("most", [0, 2**30], ids=["on disk", "in memory"])
async def test_values_arrive_as_they_are(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_inserts, "_MOST_HELD_BYTES", most)
    table = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int32()),
            "v": ["a", None, "long enough to be no short text"],
            "k": pa.array(["x", "y", "x"]).dictionary_encode(),
            "b": pa.array([b"\x00", None, b"z"]),
            "m": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
            "d": [date(2020, 1, 1), None, date(1969, 1, 1)],
            "t": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
            "l": pa.array([["a", None], None, []], pa.list_(pa.string())),
            "s": pa.array([{"y": "a"}, None, {"y": None}], pa.struct({"y": pa.string()})),
        }
    )
    made = folder(tmp_path, "parquet", table=table)
    of = session({"t": LocalFiles().resolve(made.request), "g": MemoryTable(table.schema, table)})
    assert await insert(of, "SELECT * FROM g UNION ALL SELECT * FROM g") == 6
    found = await rows(of, "SELECT * FROM t ORDER BY id")
    expected = sorted(table.to_pylist() * 3, key=lambda row: row["id"] or 9)
    assert [{**each, "k": str(each["k"])} for each in found] == expected


async def test_columns_that_are_not_named_are_null(tmp_path: Path) -> None:
    made = folder(tmp_path, "parquet")
    sql = "INSERT INTO t (v) VALUES ('x')"
    assert await rows(made.session, sql, writable=frozenset({TableName("t")})) == [{"count": 1}]
    found = await rows(made.session, "SELECT * FROM t ORDER BY v")
    assert found == [{"id": 1, "v": "a"}, {"id": None, "v": "x"}]


@pytest.mark.parametrize(
    ("format_", "name", "words"),
    [
        ("parquet", "a.pq", "end with '.pq', and files are written as '.parquet'"),
        ("json", "a.jsonl", "end with '.jsonl', and files are written as '.json'"),
        ("json", "a.json.gz", "end with '.json.gz'"),
        ("csv", "p=a/a.csv.gz", "end with '.csv.gz'"),
        ("csv", "a.csv", "in files that are only read"),
        ("parquet", "p=a/a.parquet", "other names or types than in its files"),
    ],
)
async def test_files_that_would_not_be_read_are_not_written(
    tmp_path: Path, format_: str, name: str, words: str
) -> None:
    made = folder(tmp_path, format_, name)
    before = made.files()
    with pytest.raises(InvalidQueryError, match=words):
        await made.insert(query_of(made, "SELECT 2, 'b'"))
    assert made.files() == before


async def test_values_of_partitions_are_those_of_their_folders(tmp_path: Path) -> None:
    made = folder(tmp_path, "csv", "p=a/a.csv")
    values = ["a/b", "a b", "%", "50%25", "ü", "x=y", "..", "a#b", "it's"]
    listed = ", ".join(
        "({}, 'v', '{}')".format(n, v.replace("'", "''")) for n, v in enumerate(values)
    )
    assert await made.insert(f"VALUES {listed}") == len(values)
    found = await rows(made.session, "SELECT p FROM t WHERE v = 'v' ORDER BY id")
    assert [each["p"] for each in found] == values


@pytest.mark.parametrize("format_", ["csv", "parquet"])
async def test_null_is_no_value_of_a_partition(tmp_path: Path, format_: str) -> None:
    made = folder(tmp_path, format_, f"p=7/a.{format_}")
    before = made.files()
    with pytest.raises(InvalidQueryError, match="a column whose values are the names of folders"):
        await made.insert("SELECT 2, 'b', CASE WHEN random() > 2 THEN 1 END")
    assert made.files() == before


async def test_a_full_disk_inserts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder(tmp_path, "parquet")
    before = made.files()

    def fail(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", fail)
    with pytest.raises(DiskFullError, match=r"the disk for rows .* is full"):
        await made.insert(f"SELECT value, 'x' FROM range({2 * MANY})")
    assert made.files() == before


def test_a_statement_that_is_stopped_inserts_nothing(tmp_path: Path) -> None:
    class Batch:
        def to_pyarrow(self) -> pa.RecordBatch:
            return FIRST.to_batches()[0]

    inserted: list[Any] = []
    waiting = tmp_path / "waiting"
    waiting.mkdir()

    def start() -> Any:
        yield Batch()
        assert len(list(waiting.iterdir())) == 1
        inserting.close()
        yield Batch()

    def note(given: Any) -> int:
        inserted.append(given)
        return 1

    inserting = InsertingFiles(start, note, waiting)
    with pytest.raises(ExecutionError, match="was stopped; no row was inserted"):
        inserting.write_rows()
    assert (inserted, list(waiting.iterdir())) == ([], [])

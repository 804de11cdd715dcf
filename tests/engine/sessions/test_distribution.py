"""The analysis of a statement: its tables, and the parts that executors can divide."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.partitions.keys import BucketKey, ByColumn, PartitionBy, Term
from caraway_core.protocols.results import ChunkInfo
from caraway_core.statements import Statement
from caraway_core.tables import (
    FileScan,
    FilesTable,
    MemoryTable,
    ResultPlace,
    StoredTable,
    TableSpec,
    ViewTable,
)
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions import distribution
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, snapshot

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def files(*paths: str, size_bytes: int = 0) -> FilesTable:
    scan = FileScan("parquet", paths, SCHEMA, ".parquet", size_bytes=size_bytes)
    return FilesTable(SCHEMA, (scan,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for name in ("a/1", "a/2", "a/deep/3", "ab/1", "b/1"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"k": [1, 2], "v": [3, 4]}, SCHEMA), made / f"{name}.parquet")
    return made


def over(tables: Mapping[str, TableSpec | str]) -> Session:
    made = Session(EngineSettings(2), snapshot(tables))
    assert made.install(None) == {}
    return made


@pytest.mark.parametrize(
    ("left", "right", "divided"),
    [
        (["a/1.parquet"], ["b/1.parquet"], {"t", "u"}),
        (["a/1.parquet"], ["a/2.parquet"], {"t", "u"}),
        (["a/1.parquet"], ["a/1.parquet"], set()),
        (["a/1.parquet", "b/1.parquet"], ["b/1.parquet"], set()),
        (["a/"], ["b/"], {"t", "u"}),
        (["a/"], ["ab/"], {"t", "u"}),
        (["a/"], ["a/1.parquet"], set()),
        (["a/1.parquet"], ["a/"], set()),
        (["a/"], ["a/deep/"], set()),
        (["a/deep/"], ["a/2.parquet"], {"t", "u"}),
    ],
)
def test_tables_that_share_a_file_are_not_divided(
    folder: Path, left: list[str], right: list[str], divided: set[str]
) -> None:
    def spec(names: list[str]) -> FilesTable:
        return files(*(f"{folder}/{name}" for name in names))

    session = over({"t": spec(left), "u": spec(right)})
    found = session.analyse(Statement("SELECT t.v FROM t JOIN u ON t.k = u.k", {}))
    assert found.plan is not None
    assert set(found.reads) == divided
    # Alone, each can be divided.
    for name in ("t", "u"):
        alone = session.analyse(Statement(f"SELECT v FROM {name}", {}))
        assert set(alone.reads) == {name}


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT k, v FROM t", {"t": ["kv"]}),
        ("SELECT k FROM t WHERE v > 1", {"t": ["kv"]}),
        ("SELECT k FROM t", {"t": ["k"]}),
        ("SELECT count(*) FROM t", {"t": [""]}),
        ("SELECT a.k FROM t a JOIN t b ON a.k = b.v", {"t": ["k", "v"]}),
        ("SELECT a.k, a.v FROM t a JOIN u b ON a.k = b.k", {"t": ["kv"], "u": ["k"]}),
        ("SELECT k FROM v", {"t": ["k"]}),
        ("SELECT k FROM t UNION ALL SELECT v FROM u", {"t": ["k"], "u": ["v"]}),
    ],
)
def test_each_read_of_a_table_has_its_columns(
    folder: Path, sql: str, reads: dict[str, list[str]]
) -> None:
    session = over(
        {
            "t": files(f"{folder}/a/1.parquet"),
            "u": files(f"{folder}/b/1.parquet"),
            "v": "SELECT k FROM t",
        }
    )
    found = session.analyse(Statement(sql, {}))
    assert found.plan is not None, found.objection
    assert found.reads == {name: set(map(frozenset, each)) for name, each in reads.items()}
    assert set(found.tables) == set(reads)


@pytest.mark.parametrize(
    ("sql", "objection"),
    [
        ("EXPLAIN SELECT k FROM t", "a statement that does more than read runs whole"),
        ("SELECT t.k FROM t JOIN u ON t.k < u.k", "a join without equal keys runs whole"),
        ("SELECT t.k FROM t, u", "a join without equal keys runs whole"),
        ("SELECT t.k FROM t JOIN m ON t.k = m.k", "table 'm' cannot be divided among executors"),
        ("SELECT k FROM m", "table 'm' cannot be divided among executors"),
    ],
)
def test_a_statement_that_runs_whole_says_why(folder: Path, sql: str, objection: str) -> None:
    session = over(
        {
            "t": files(f"{folder}/a/1.parquet"),
            "u": files(f"{folder}/b/1.parquet"),
            "m": memory(k=[1]),
        }
    )
    found = session.analyse(Statement(sql, {}))
    assert found.objection == objection
    assert (found.plan, dict(found.reads), dict(found.filters)) == (None, {}, {})


PATHS = st.sampled_from(["a/", "a/b/", "a/b/c", "a/c", "ab/", "ab", "b/", "b/c", "c"])


@given(st.sets(PATHS, max_size=3), st.sets(PATHS, max_size=3))
def test_paths_overlap_where_a_file_may_be_in_both(some: set[str], others: set[str]) -> None:
    files_ = ["a/x", "a/b/x", "a/b/c", "a/b/c/x", "a/c", "ab", "ab/x", "b/x", "b/c", "c"]

    def covered(paths: set[str]) -> set[str]:
        return {
            file for file in files_
            for path in paths if file == path or (path.endswith("/") and file.startswith(path))
        }  # fmt: skip

    found = distribution._overlap(frozenset(some), frozenset(others))
    assert found == bool(covered(some) & covered(others))


def stored(*terms: Term, sizes: tuple[int, ...] = (5, 7)) -> StoredTable:
    chunks = tuple(ChunkInfo(number, 1, size, f"{number:064}") for number, size in enumerate(sizes))
    return StoredTable(SCHEMA, ResultPlace("file", "x"), "t", chunks, None, PartitionBy(terms))


def test_facts_are_of_tables_and_not_of_views() -> None:
    specs = {
        TableName("f"): files("/x.parquet", size_bytes=100),
        TableName("m"): MemoryTable(SCHEMA, SCHEMA.empty_table()),
        TableName("s"): stored(),
        TableName("v"): ViewTable("SELECT 1"),
    }
    found = distribution.facts(specs)
    # Stages do not divide rows that an engine has from the start.
    assert set(found) == {"f", "s"}
    assert (found[TableName("f")].columns, found[TableName("f")].is_kept) == (2, False)
    assert (found[TableName("s")].size_bytes, found[TableName("s")].is_kept) == (12, True)
    whole = distribution.facts(specs, frozenset({TableName("f"), TableName("s")}))
    assert not any(each.is_divisible for each in whole.values())


@pytest.mark.parametrize(
    ("terms", "column"),
    [
        ((), None),
        ((BucketKey(4, "k"),), 0),
        ((BucketKey(4, "v"),), 1),
        ((ByColumn("k"),), None),
        ((BucketKey(4, "k"), BucketKey(2, "v")), None),
        ((BucketKey(4, "k"), ByColumn("v")), None),
    ],
)
def test_tables_in_buckets_of_one_column_can_be_joined_in_place(
    terms: tuple[Term, ...], column: int | None
) -> None:
    name = TableName("s")
    buckets = distribution.facts({name: stored(*terms)})[name].buckets
    assert (buckets.column if buckets else None) == column


def test_tables_are_of_one_group_only_if_equal_values_share_a_bucket() -> None:
    def group(schema: pa.Schema, count: int) -> str | None:
        name = TableName("s")
        table = StoredTable(
            schema, ResultPlace("file", "x"), "t", (), None, PartitionBy((BucketKey(count, "k"),))
        )
        found = distribution.facts({name: table})[name].buckets
        return found.group if found else None

    same = group(pa.schema([("k", pa.int64())]), 4)
    assert same is not None
    assert group(pa.schema([("v", pa.string()), ("k", pa.int64())]), 4) == same
    assert group(pa.schema([("k", pa.int64())]), 8) != same
    assert group(pa.schema([("k", pa.string())]), 4) != same

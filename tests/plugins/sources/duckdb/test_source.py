"""Tables of DuckDB files: their discovery, their comparison, and the refused ones."""

import subprocess
import sys
from pathlib import Path
from threading import Thread

import duckdb
import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.duckdb import attached
from caraway_plugins.sources.duckdb.reader import DuckdbReader
from caraway_plugins.sources.duckdb.source import DuckdbSource
from tests.kit.duckdb_files import request, resolved, run
from tests.kit.engine import rows, session
from tests.kit.remote import watched


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "tables.duckdb"
    run(
        made,
        "CREATE TABLE t (id INTEGER, name VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'B'), (3, NULL)",
    )
    return made


def refused(file: Path, name: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        DuckdbSource().resolve(request(file, name, **params))
    assert caught.value.message.startswith("dataset 't': ")
    assert str(file.parent) not in caught.value.message
    return caught.value


async def test_names_with_dots_and_quotes_are_written_in_quotes(file: Path) -> None:
    run(file, 'CREATE SCHEMA "s.x"', 'CREATE TABLE "s.x"."a""b" AS SELECT 7 AS n')
    over = session({"t": resolved(file, '"s.x"."a""b"')})
    assert await rows(over, "SELECT n FROM t WHERE n > 1") == [{"n": 7}]


def test_an_unknown_param_is_refused_with_the_nearest(file: Path) -> None:
    with pytest.raises(DatasetError, match="did you mean 'duckdb_open'"):
        DuckdbSource().resolve(request(file, "t", duckdb_opne="x"))


def test_a_file_that_another_process_writes_is_tried_again(file: Path) -> None:
    program = (
        f"import duckdb, sys; connection = duckdb.connect({str(file)!r}); "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        assert refused(file, "t").type == "unavailable"
        writer.communicate()
    assert resolved(file, "t").row_count == 3


async def test_types_without_an_arrow_form_are_read_as_text(file: Path) -> None:
    run(
        file,
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE odd AS SELECT 12345678901234567890123::HUGEINT AS h, 'good'::mood AS m, "
        "INTERVAL 1 DAY AS i, {'a': 1} AS s, [1, 2] AS l, 7::UTINYINT AS u, "
        "'2024-01-02 03:04:05.123456789'::TIMESTAMP_NS AS ns",
    )
    table = resolved(file, "odd")
    assert table.schema.types == [
        pa.string(), pa.string(), pa.string(), pa.string(), pa.list_(pa.int32()), pa.uint8(),
        pa.timestamp("ns"),
    ]  # fmt: skip
    over = session({"t": table})
    (row,) = await rows(over, "SELECT h, m, i, s, l, u FROM t WHERE m = 'good' AND u = 7")
    assert row == {
        "h": "12345678901234567890123", "m": "good", "i": "1 day", "s": "{'a': 1}", "l": [1, 2],
        "u": 7,
    }  # fmt: skip
    assert await rows(over, "SELECT count(*) AS n FROM t WHERE h > '2'") == [{"n": 0}]


async def test_texts_of_a_file_without_collations_are_compared_there(file: Path) -> None:
    over = session({"t": resolved(file, "t")})
    with watched("duckdb") as sent:
        assert await rows(over, "SELECT count(*) AS n FROM t WHERE name = 'a'") == [{"n": 1}]
    assert "\"name\" = 'a'" in sent[0]


async def test_texts_of_a_file_with_collations_are_compared_by_the_engine(file: Path) -> None:
    run(
        file,
        "CREATE TABLE folded (name VARCHAR COLLATE NOCASE)",
        "INSERT INTO folded VALUES ('a'), ('A'), ('b')",
        "CREATE VIEW above AS SELECT name FROM folded",
    )
    for name in ("folded", "above"):
        over = session({"t": resolved(file, name)})
        assert await rows(over, "SELECT count(*) AS n FROM t WHERE name = 'a'") == [{"n": 1}]
        assert len(await rows(over, "SELECT name FROM t GROUP BY name")) == 3
        assert await rows(over, "SELECT max(name) AS m FROM t") == [{"m": "b"}]


async def test_infinite_days_are_no_days(file: Path) -> None:
    run(file, "CREATE TABLE ends AS SELECT 'infinity'::DATE AS d, '-infinity'::TIMESTAMP AS at")
    over = session({"t": resolved(file, "ends")})
    for column in ("d", "at"):
        with pytest.raises(QueryError, match=r"is not a (date|timestamp)"):
            await rows(over, f"SELECT {column} FROM t")


async def test_declared_columns_are_those_of_the_dataset(file: Path) -> None:
    declared = [pa.field("id", pa.string())]
    over = session({"t": resolved(file, "t", declared)})
    assert await rows(over, "SELECT * FROM t WHERE id = '2'") == [{"id": "2"}]
    with pytest.raises(DatasetError, match="no column 'x'"):
        resolved(file, "t", [pa.field("x", pa.int64())])


def test_a_view_reads_no_other_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    run(file, f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    assert refused(file, "v").type == "invalid"


def test_a_number_that_is_too_large_is_said_to_be(file: Path) -> None:
    sql = "SELECT CAST(sum(9223372036854775807) AS BIGINT) FROM t"
    found = DuckdbReader().read(resolved(file, "t"), sql, pa.schema([("n", pa.int64())]))
    with pytest.raises(
        QueryError, match=r"overflow: duckdb table 'main\.t': a number is too large"
    ):
        list(found)


def test_a_read_is_stopped_by_another_thread(file: Path) -> None:
    sql = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"
    found = DuckdbReader().read(resolved(file, "t"), sql, pa.schema([("n", pa.int64())]))
    errors: list[Exception] = []

    def read() -> None:
        try:
            list(found)
        except QueryError as exc:
            errors.append(exc)

    thread = Thread(target=read)
    thread.start()
    found.close()
    thread.join(60)
    assert not thread.is_alive()
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE later (i INTEGER)")


@pytest.mark.parametrize(
    "where", ["bonus BETWEEN NULL AND 10.25", "bonus > NULL AND bonus < 10 AND id % 3 = 1"]
)
async def test_a_constant_beside_a_filter_that_stays_above_is_no_error(
    file: Path, where: str
) -> None:
    run(file, "CREATE TABLE emp AS SELECT 1 AS id, 1.5::DOUBLE AS bonus")
    over = session({"emp": resolved(file, "emp")})
    assert await rows(over, f"SELECT id FROM emp WHERE {where}") == []


async def test_two_statements_share_a_file_that_others_write_after_the_last(file: Path) -> None:
    table = resolved(file, "t")
    schema = pa.schema([("id", pa.int32())])
    first, second = (
        DuckdbReader().read(table, 'SELECT "id" FROM "main"."t"', schema) for _ in "ab"
    )
    assert next(iter(first)).num_rows == next(iter(second)).num_rows == 3
    first.close()
    with pytest.raises(duckdb.Error):
        run(file, "INSERT INTO t VALUES (4, 'd')")
    second.close()
    run(file, "INSERT INTO t VALUES (4, 'd')")
    third = DuckdbReader().read(table, 'SELECT "id" FROM "main"."t"', schema)
    assert sum(each.num_rows for each in third) == 4


@pytest.mark.parametrize("name", ["memory.duckdb", 'it\'s "odd".db', "a.b.duckdb"])
async def test_a_file_has_any_name(file: Path, name: str) -> None:
    moved = file.rename(file.with_name(name))
    over = session({"t": resolved(moved, "t")})
    assert len(await rows(over, "SELECT * FROM t WHERE id > 1")) == 2


async def test_many_files_are_read_and_few_are_kept(tmp_path: Path) -> None:
    for number in range(20):
        file = tmp_path / f"{number}.duckdb"
        run(file, f"CREATE TABLE t AS SELECT {number} AS n")
        over = session({"t": resolved(file, "t")})
        assert await rows(over, "SELECT n FROM t") == [{"n": number}]
    assert len(attached._kept) <= 16

"""Each writable database runs an UPDATE or DELETE whole, or refuses it."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.loading import registry
from caraway_core.protocols.remote import TableChange
from caraway_core.tables import MemoryTable
from caraway_engine.remote import answers
from caraway_engine.sessions.sessions import Session
from tests.conformance.written_databases import (
    BEFORE,
    KINDS,
    TABLE,
    TEXTS,
    Kind,
    connector,
    create,
    create_rows,
    keyed,
    kind,
    mariadb_server,
    of,
    read_rows,
    refused,
    write,
)
from tests.kit.engine import rows

__all__ = ["connector", "keyed", "kind", "mariadb_server"]
ODD = "Select ${x}; --'"


@pytest.fixture
def over(kind: Kind) -> Session:
    """A session over a table `t` of three rows."""
    create_rows(kind, "id BIGINT NOT NULL PRIMARY KEY")
    return of(kind, "t")


def test_every_changer_has_a_class_here() -> None:
    names = registry.REMOTE_READERS
    assert set(KINDS) == {each for each in names if registry.database_reader(each).is_changeable}


async def test_rows_that_meet_the_condition_are_updated(over: Session) -> None:
    assert await write(over, "UPDATE t SET n = 7, v = 'it''s' WHERE id = 2") == 1
    assert await write(over, "UPDATE t SET v = NULL WHERE id >= 2 AND n IS NOT NULL") == 2
    assert await read_rows(over) == [BEFORE[0], {"id": 2, "n": 7, "v": None}, BEFORE[2]]


async def test_rows_that_have_their_values_already_count(over: Session) -> None:
    assert await write(over, "UPDATE t SET n = 10 WHERE id IN (1, 99)") == 1
    assert await read_rows(over) == BEFORE


async def test_rows_that_meet_the_condition_are_deleted(over: Session) -> None:
    assert await write(over, "DELETE FROM t WHERE n > 10 OR id = 2") == 2
    assert await read_rows(over) == BEFORE[:1]
    assert await write(over, "DELETE FROM t WHERE n > 10") == 0
    assert await write(over, "DELETE FROM t") == 1
    assert await read_rows(over) == []


@pytest.mark.parametrize("verb", ["UPDATE t SET n = 1", "DELETE FROM t"])
async def test_a_condition_that_never_holds_changes_nothing(over: Session, verb: str) -> None:
    for condition in ("FALSE", "NULL", "1 = 2", "id = 1 AND id = 2", "n = NULL"):
        assert await write(over, f"{verb} WHERE {condition}") == 0, condition
    assert await read_rows(over) == BEFORE


async def test_a_condition_that_always_holds_changes_all(over: Session) -> None:
    assert await write(over, "UPDATE t SET n = 1 WHERE 1 = 1") == 3


async def test_parameters_are_values(over: Session) -> None:
    for hostile in ("');--", "\\'--", '"; --', "\\", "'||'", "%s", "a:b", "${x}"):
        values = {"1": hostile, "2": 1}
        assert await write(over, "UPDATE t SET v = $1 WHERE id = $2", parameters=values) == 1
        assert (await read_rows(over))[0] == {"id": 1, "n": 10, "v": hostile}
        assert (await read_rows(over))[1:] == BEFORE[1:]


async def test_names_are_taken_as_they_are(kind: Kind) -> None:
    names = ['a"b', "a`b", "%s", "values (1)", "select", "x'; DROP TABLE t; --", "Ü", "a, b"]
    create(kind, ODD, ", ".join(f"{kind.quoted(each)} INTEGER" for each in names))
    kind.run(f"INSERT INTO {kind.quoted(ODD)} VALUES (0, 1, 2, 3, 4, 5, 6, 7)")
    over = of(kind, ODD)
    for number, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        sql = f"UPDATE t SET {quoted} = {number + 10} WHERE {quoted} = {number}"
        assert await write(over, sql) == 1
    assert await rows(over, "SELECT * FROM t") == [
        {each: number + 10 for number, each in enumerate(names)}
    ]
    assert await write(over, 'DELETE FROM t WHERE "x\'; DROP TABLE t; --" = 15') == 1


VALUES = pa.table({
    "id": pa.array([1], pa.int64()),
    "t": pa.array(["\\N'\"\n\té\U0001f600"], pa.string()),
    "i": pa.array([-(2**63)], pa.int64()),
    "s": pa.array([-9], pa.int16()),
    "f": pa.array([0.1], pa.float64()),
    "m": pa.array([Decimal("-2.25")], pa.decimal128(15, 2)),
    "b": pa.array([True], pa.bool_()),
    "d": pa.array([date(2024, 2, 29)], pa.date32()),
    "at": pa.array([datetime(2024, 2, 29, 1, 2, 3, 4)], pa.timestamp("us")),
    "z": pa.array([datetime(2024, 2, 29, 1, 2, 3, 4, UTC)], pa.timestamp("us", "UTC")),
})  # fmt: skip
NEW = {
    "t": ("'😀 \\\\N''x'", "😀 \\\\N'x"),
    "i": ("9223372036854775807", 2**63 - 1),
    "s": ("32767", 32767),
    "f": ("1e-300", 1e-300),
    "m": ("9999999999999.99", Decimal("9999999999999.99")),
    "b": ("FALSE", False),
    "d": ("DATE '1969-12-31'", date(1969, 12, 31)),
    "at": ("TIMESTAMP '1999-12-31 23:59:59.999999'", datetime(1999, 12, 31, 23, 59, 59, 999_999)),
    "z": ("TIMESTAMPTZ '2000-01-01 01:00:00+02:00'", datetime(1999, 12, 31, 23, tzinfo=UTC)),
}


@pytest.mark.parametrize("name", sorted(NEW))
async def test_constants_of_all_types_are_set(kind: Kind, name: str) -> None:
    kind.load("values", VALUES.slice(0, 0))
    over = of(kind, "values", m=MemoryTable(VALUES.schema, VALUES))
    assert await write(over, "INSERT INTO t SELECT * FROM m") == 1
    written, value = NEW[name]
    assert await write(over, f"UPDATE t SET {name} = {written} WHERE id = 1") == 1
    assert await read_rows(over) == [{**VALUES.to_pylist()[0], name: value}]
    assert await write(over, f"UPDATE t SET {name} = NULL") == 1
    assert await read_rows(over) == [{**VALUES.to_pylist()[0], name: None}]


async def test_whole_numbers_are_computed(over: Session) -> None:
    assert await write(over, "UPDATE t SET n = n + 1, id = id * 5 - 1 WHERE n < 20") == 1
    assert await write(over, "UPDATE t SET n = n - 30 WHERE id + n > 30 AND id - 3 = 0") == 1
    assert await read_rows(over) == [
        {"id": 2, "n": None, "v": "b"}, {"id": 3, "n": 0, "v": None}, {"id": 4, "n": 11, "v": "a"},
    ]  # fmt: skip


async def test_columns_are_set_to_what_others_were_before(kind: Kind) -> None:
    create(kind, "t", "id BIGINT PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER")
    kind.run("INSERT INTO t VALUES (1, 10, 20, 30)")
    over = of(kind, "t")
    assert await write(over, "UPDATE t SET a = 5, b = a, c = b WHERE id = 1") == 1
    assert await rows(over, "SELECT a, b, c FROM t") == [{"a": 5, "b": 10, "c": 20}]
    assert await write(over, "UPDATE t SET c = b, b = a, a = 6") == 1
    assert await rows(over, "SELECT a, b, c FROM t") == [{"a": 6, "b": 5, "c": 10}]


async def test_columns_are_exchanged_or_the_statement_is_refused(
    kind: Kind, connector: str
) -> None:
    create(kind, "t", "id BIGINT PRIMARY KEY, a INTEGER, b INTEGER")
    kind.run("INSERT INTO t VALUES (1, 10, 20)")
    over = of(kind, "t")
    if connector == "mysql":
        error = await refused(over, "UPDATE t SET a = b, b = a")
        assert "use several statements" in error.message
    else:
        assert await write(over, "UPDATE t SET a = b, b = a") == 1
        assert await rows(over, "SELECT a, b FROM t") == [{"a": 20, "b": 10}]


REFUSED = [
    ("UPDATE t SET n = 1 WHERE upper(v) = 'A'", "its condition"),
    ("DELETE FROM t WHERE reverse(v) = 'a'", "its condition"),
    ("DELETE FROM t WHERE v LIKE '%' || v", "its condition"),
    ("UPDATE t SET v = upper(v)", "the new value of column 'v'"),
    ("UPDATE t SET n = n / 3", "the new value of column 'n'"),
    ("UPDATE t SET n = CASE WHEN n > 5 THEN n / 3 ELSE 2 END", "the new value of column 'n'"),
    ("UPDATE t SET v = n", "the new value of column 'v'"),
    ("UPDATE t SET n = n", "no column gets another value"),
    ("UPDATE t SET n = 1 WHERE id IN (SELECT id FROM t)", "cannot have a subquery"),
    ("UPDATE t SET n = (SELECT max(id) FROM t)", "cannot have a subquery"),
    ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM t)", "cannot have a subquery"),
]


@pytest.mark.parametrize(("sql", "words"), REFUSED)
async def test_what_a_database_may_take_otherwise_is_refused(
    over: Session, sql: str, words: str
) -> None:
    error = await refused(over, sql)
    assert isinstance(error, InvalidQueryError) and words in error.message, error.message


FAILING = [
    "UPDATE t SET n = 2000 WHERE id < 3",
    "UPDATE t SET id = NULL",
    "UPDATE t SET v = 'too long a text' WHERE id = 1",
    "UPDATE t SET n = 9223372036854775807 WHERE id = 1",
    "UPDATE t SET n = n * 1000000000 WHERE id = 3",
    "UPDATE t SET id = id + 9223372036854775807",
    "UPDATE t SET id = -9223372036854775807 - id",
    "UPDATE t SET id = (id + 3000000000) * 9223372036854775807 WHERE id = 1",
]


@pytest.mark.parametrize("sql", FAILING)
async def test_a_statement_that_fails_changes_nothing(
    over: Session, connector: str, sql: str
) -> None:
    if "too long" in sql and connector in (
        "delta",
        "sqlite",
        "duckdb",
    ):  # They keep texts of any length.
        assert await write(over, sql) == 1
    else:
        assert await refused(over, sql)


async def test_a_key_is_kept_once(keyed: Kind) -> None:
    create_rows(keyed)
    await refused(of(keyed, "t"), "UPDATE t SET id = 9")


async def test_a_table_that_is_gone_is_an_error(keyed: Kind) -> None:
    create_rows(keyed)
    over = of(keyed, "t")
    keyed.run("DROP TABLE t")
    with pytest.raises(QueryError, match="no row was deleted"):
        await write(over, "DELETE FROM t WHERE id = 1")
    with pytest.raises(QueryError, match="no row was changed"):
        await write(over, "UPDATE t SET n = 1 WHERE id = 1")


async def test_who_may_not_write_changes_nothing(over: Session) -> None:
    for sql in ("UPDATE t SET n = 1", "DELETE FROM t"):
        with pytest.raises(QueryError):
            await rows(over, sql)
        with pytest.raises(QueryError):
            await rows(over, sql, may_write=True)
    assert await read_rows(over) == BEFORE


async def test_explain_changes_nothing(over: Session) -> None:
    for sql in ("UPDATE t SET n = 1", "DELETE FROM t"):
        try:
            await rows(over, f"EXPLAIN {sql}", writable=frozenset({TABLE}))
        except QueryError:
            pass
    assert await read_rows(over) == BEFORE


def test_a_change_that_was_stopped_before_it_begins_does_nothing(over: Session) -> None:
    table = over.snapshot.tables[TABLE].written
    assert table is not None
    changer = answers.changer(table.reader)
    assert changer is not None
    change = changer.change(table, TableChange(""))
    change.close()
    with pytest.raises(ExecutionError, match="was stopped; no row was deleted"):
        change.write_rows()


async def test_choices_and_functions(kind: Kind) -> None:
    create_rows(kind, "id BIGINT NOT NULL PRIMARY KEY", TEXTS[type(kind).__name__])
    over = of(kind, "t")
    sql = (
        "UPDATE t SET n = CASE id WHEN 1 THEN -n WHEN 2 THEN coalesce(n, 5) END, "
        "v = coalesce(v, 'x') || 'y' WHERE nullif(id, 3) IS NOT NULL OR abs(n) = 30"
    )
    assert await write(over, sql) == 3
    assert await read_rows(over) == [
        {"id": 1, "n": -10, "v": "ay"}, {"id": 2, "n": 5, "v": "by"},
        {"id": 3, "n": None, "v": "xy"},
    ]  # fmt: skip
    assert await write(over, "DELETE FROM t WHERE greatest(n, 0) = 0 OR least(n, id) IS NULL") == 2
    # Numbers that are negated by rounding them are no whole numbers.
    await refused(over, "UPDATE t SET n = CAST(0 - CAST(id + 0.5 AS DECIMAL(20, 0)) AS INT)",
                  "otherwise than this runtime")  # fmt: skip


NAN = {
    "delta": "CAST('NaN' AS DOUBLE)",
    "duckdb": "CAST('NaN' AS DOUBLE)",
    "postgres": "'NaN'::float8",
}


@pytest.mark.parametrize("condition", ["d < 5.0", "d = m", "d > 0 AND coalesce(d, 7.0) < 5.0"])
async def test_doubles_are_compared_and_nan_is_an_error(
    kind: Kind, connector: str, condition: str
) -> None:
    create(kind, "t", "id BIGINT, d DOUBLE PRECISION, m DOUBLE PRECISION")
    kind.run("INSERT INTO t VALUES (1, 2.5, 2.5), (2, NULL, 1)")
    over = of(kind, "t")
    if connector == "sqlite":
        await refused(over, f"DELETE FROM t WHERE {condition}", "otherwise than this runtime")
        return
    assert await write(over, f"UPDATE t SET d = d * 2 - id WHERE {condition}") == 1
    found = await rows(over, "SELECT d FROM t ORDER BY id")
    assert [each["d"] for each in found] == [4.0, None]
    if connector in NAN:
        kind.run(f"INSERT INTO t VALUES (3, {NAN[connector]}, 1)")
        before = repr(await rows(over, "SELECT * FROM t ORDER BY id"))
        with pytest.raises(InvalidQueryError, match=r"a condition compares a NaN.*no row was del"):
            await write(over, f"DELETE FROM t WHERE {condition}")
        assert repr(await rows(over, "SELECT * FROM t ORDER BY id")) == before
        kind.run("DELETE FROM t WHERE id = 3")

"""Values of every type, in the snapshot and in the log."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from tests.kit.following import Replica
from tests.kit.postgres import Server
from tests.plugins.changes.postgres.conftest import Followed

ID = "00000000-0000-0000-0000-000000000001"
NOON = datetime(2024, 2, 29, 12, 0, 0, 500_000)
VALUES: list[tuple[str, str, pa.DataType, Any]] = [
    ("boolean", "true", pa.bool_(), True),
    ("smallint", "-32768", pa.int16(), -32768),
    ("integer", "2147483647", pa.int32(), 2147483647),
    ("bigint", "-9223372036854775808", pa.int64(), -9223372036854775808),
    ("oid", "4294967295", pa.uint32(), 4294967295),
    ("real", "1.5", pa.float32(), 1.5),
    ("double precision", "0.1", pa.float64(), 0.1),
    ("double precision", "'-Infinity'", pa.float64(), float("-inf")),
    ("numeric(10,2)", "-12345678.90", pa.decimal128(10, 2), Decimal("-12345678.90")),
    ("numeric(50,5)", "1.5", pa.decimal256(50, 5), Decimal("1.50000")),
    ("numeric", "2::numeric/3", pa.decimal128(38, 20), Decimal("0.66666666666666666667")),
    ("numeric(3,-2)", "12345", pa.string(), "12300"),
    ("text", "E'a\\tb\\\\ \\nü'", pa.string(), "a\tb\\ \nü"),
    ("text", "''", pa.string(), ""),
    ("varchar(9)", "'v'", pa.string(), "v"),
    ("char(3)", "'c'", pa.string(), "c  "),
    ("bytea", "'\\x00ff'", pa.binary(), b"\x00\xff"),
    ("date", "'0001-01-01'", pa.date32(), date(1, 1, 1)),
    ("time", "'23:59:59.999999'", pa.time64("us"), time(23, 59, 59, 999_999)),
    ("timetz", "'12:00+02'", pa.string(), "12:00:00+02"),
    ("timestamp", "'2024-02-29 12:00:00.5'", pa.timestamp("us"), NOON),
    (
        "timestamptz",
        "'2024-02-29 14:00:00.5+02'",
        pa.timestamp("us", "UTC"),
        NOON.replace(tzinfo=UTC),
    ),
    ("interval", "'1 day 2 hours'", pa.string(), "1 day 02:00:00"),
    ("uuid", f"'{ID}'", pa.string(), ID),
    ("json", "'{\"a\": 1}'", pa.string(), '{"a": 1}'),
    ("jsonb", "'{\"a\":1}'", pa.string(), '{"a": 1}'),
    ("inet", "'10.0.0.1/8'", pa.string(), "10.0.0.1/8"),
    ("point", "'(1,2)'", pa.string(), "(1,2)"),
    ("int4range", "'[1,3)'", pa.string(), "[1,3)"),
    ("bit(3)", "'101'", pa.string(), "101"),
    ("mood", "'glad'", pa.string(), "glad"),
    ("positive", "7", pa.int32(), 7),
    ("integer[]", "'{1,NULL,3}'", pa.list_(pa.int32()), [1, None, 3]),
    (
        "text[]",
        "ARRAY['a,b', '\"', 'NULL', NULL, '']",
        pa.list_(pa.string()),
        ["a,b", '"', "NULL", None, ""],
    ),
    (
        "timestamptz[]",
        "ARRAY['2024-02-29 12:00:00.5+00'::timestamptz]",
        pa.list_(pa.timestamp("us", "UTC")),
        [NOON.replace(tzinfo=UTC)],
    ),
    ("numeric(5,1)[]", "'{1.5}'", pa.list_(pa.decimal128(5, 1)), [Decimal("1.5")]),
    ("boolean[]", "'{t,f}'", pa.list_(pa.bool_()), [True, False]),
]


@pytest.fixture(scope="module")
def kinds(postgres: Server) -> None:
    postgres.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN whole AS integer",
        "CREATE DOMAIN positive AS whole CHECK (VALUE > 0)",
    )


async def test_values_of_all_types(followed: Followed, kinds: None) -> None:
    columns = ", ".join(f"ADD c{i} {kind}" for i, (kind, *_) in enumerate(VALUES))
    literals = ", ".join(literal for _, literal, *_ in VALUES)
    followed.sql(
        f"ALTER TABLE $t {columns}",
        "DELETE FROM $t",
        f"INSERT INTO $t VALUES (1, NULL, {literals})",
        "INSERT INTO $t VALUES (2)",
    )
    schema = await followed.source().schema()
    assert [field.type for field in schema][2:] == [type_ for _, _, type_, _ in VALUES]
    async with followed.following() as feed:
        await feed.load()
        followed.sql(
            f"INSERT INTO $t VALUES (3, NULL, {literals})",
            "INSERT INTO $t VALUES (4)",
        )
        while len(followed.replica.rows) < 4:
            await feed.next()
    expected = [value for *_, value in VALUES]
    for key in (1, 3):
        assert list(followed.replica.rows[key,].values())[2:] == expected
    for key in (2, 4):
        assert set(list(followed.replica.rows[key,].values())[1:]) == {None}


@pytest.mark.parametrize(
    ("kind", "literal", "said"),
    [
        ("numeric", "'NaN'", "column 'v': 'NaN' is not a decimal128"),
        ("timestamp", "'infinity'", "column 'v': 'infinity' is not a timestamp"),
        ("date", "'0044-03-15 BC'", "column 'v': '0044-03-15 BC' is not a date32"),
        ("integer[]", "'{{1,2},{3,4}}'", r"column 'v': '\{\{1,2\},\{3,4\}\}' is not a list"),
    ],
)
async def test_errors_name_values_without_an_arrow_form_and_the_remedy(
    followed: Followed, kind: str, literal: str, said: str
) -> None:
    followed.sql(f"ALTER TABLE $t ADD v {kind}", f"UPDATE $t SET v = {literal} WHERE id = 2")
    async with followed.following() as feed:
        with pytest.raises(DatasetError, match=f"'public.{followed.table}': {said}.* text"):
            await feed.next()
    followed.declared = (pa.field("id", pa.int64()), pa.field("v", pa.string()))
    async with followed.following() as feed:
        await feed.load()
    assert followed.replica.rows[2,]["v"] == literal.strip("'")


async def test_declared_columns_are_those_that_are_read(followed: Followed) -> None:
    followed.sql("ALTER TABLE $t ADD n int, ADD hidden text")
    followed.declared = (pa.field("n", pa.int64()), pa.field("id", pa.string()))
    async with followed.following() as feed:
        await feed.load()
        followed.sql("ALTER TABLE $t ADD later int", "INSERT INTO $t (id, n) VALUES (3, 5)")
        batch = await feed.next()
    (row,) = batch.changes.rows.select(["n", "id"]).to_pylist()
    assert row == {"n": 5, "id": "3"}


async def test_generated_columns_are_left_out(followed: Followed) -> None:
    followed.sql("ALTER TABLE $t ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED")
    assert (await followed.source().schema()).names == ["id", "note"]
    async with followed.following() as feed:
        await feed.load()
        followed.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next()
    assert len(followed.replica.rows) == 3


async def test_names_that_need_quotes_are_no_trouble(postgres: Server, followed: Followed) -> None:
    name = f'Strange "{followed.table}'
    quoted = '"' + name.replace('"', '""') + '"'
    postgres.execute(
        f'CREATE TABLE {quoted} ("The Id" int, "%s" int, PRIMARY KEY ("%s", "The Id"))',
        f"INSERT INTO {quoted} VALUES (1, 2)",
    )
    strange = Followed(postgres, name, Replica("The Id", "%s"))
    assert await strange.source().primary_key() == ("%s", "The Id")
    async with strange.following() as feed:
        await feed.load()
        postgres.execute(f"INSERT INTO {quoted} VALUES (3, 4)")
        await feed.next()
    assert set(strange.replica.rows) == {(1, 2), (3, 4)}


async def test_partitions_of_a_table_are_one_table(postgres: Server, followed: Followed) -> None:
    name = f"{followed.table}_parted"
    postgres.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (10)",
        f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (10) TO (20)",
        f"INSERT INTO {name} VALUES (1, 'one')",
    )
    parted = Followed(postgres, name, Replica("id"))
    async with parted.following() as feed:
        await feed.load()
        postgres.transact(
            f"INSERT INTO {name} VALUES (11, 'eleven')", f"UPDATE {name} SET id = 12 WHERE id = 1"
        )
        await feed.next()
    assert set(parted.replica.rows) == {(11,), (12,)}

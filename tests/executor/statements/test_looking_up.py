"""Point lookups answer as the engine would, and are known from what only looks like one."""

import datetime as dt
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_core.tables import Keys, LookupColumns, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.statements.looking_up import RowsStream
from tests.kit.changes import bucketed, logged
from tests.kit.engine import snapshot
from tests.kit.stored import parted, path_of, stored

T = TableName("t")
FIELDS = [
    pa.field("id", pa.int32(), nullable=False, metadata={"is": "the key"}),
    pa.field("Name", pa.string()),
    pa.field("g", pa.int8()),
    pa.field("u", pa.uint64()),
    pa.field("big", pa.large_string()),
    pa.field("at", pa.timestamp("us", "UTC")),
    pa.field("l", pa.list_(pa.string())),
]
ROWS = pa.Table.from_pylist(
    [
        {
            "id": n,
            "Name": f"n'{n}" if n % 5 else None,
            "g": n % 7 - 3,
            "u": 2**63 + n if n % 2 else abs(n),
            "big": f"b{n % 10}",
            "at": dt.datetime(2024, 1, 1, n % 24, tzinfo=dt.UTC),
            "l": [str(n)] * (n % 3),
        }
        for n in range(-50, 250)
        if n % 2 == 0 or n >= 0
    ],
    schema=pa.schema(FIELDS, metadata={"of": "the table"}),
)
INDEXES = (
    LookupColumns(("g",)),
    LookupColumns(("Name",)),
    LookupColumns(("u",)),
    LookupColumns(("g", "big")),
)
KEYS = Keys(("id",), indexes=INDEXES)
LOOKUPS = (
    "SELECT * FROM t WHERE id = 7",
    "select id, at from t where 7 = id",
    "SELECT at, id, at AS again FROM t WHERE id = -4 LIMIT 1",
    "SELECT * FROM t WHERE id = 1000000",
    "SELECT * FROM t WHERE id IN (1, 2, 2, -6, 999)",
    "SELECT * FROM t WHERE id IN (3)",
    "SELECT l FROM caraway.public.t AS x WHERE x.id = 5",
    "SELECT \"Name\" FROM t WHERE \"Name\" = 'n''7'",
    "SELECT id FROM t WHERE \"Name\" = 'nobody''s; DROP TABLE t --'",
    "SELECT id, l FROM t WHERE g = -3",
    "SELECT id FROM t WHERE g = 2 AND big = 'b9'",
    "SELECT id FROM t WHERE big = 'b9' AND (g = 2)",
    "SELECT id FROM t WHERE g IN (1, 2) AND big IN ('b1', 'b2', 'b1')",
    "SELECT id FROM t WHERE u = 4",
    "SELECT * FROM (SELECT id AS k, g FROM t) WHERE k = 12",
    "SELECT id FROM t WHERE id = 7 LIMIT 0",
    "SELECT g FROM v WHERE id = 8",
    "  \n SELECT\tid\nFROM t\nWHERE id=7 ;",
)
OTHERS = (
    "SELECT id + 1 FROM t WHERE id = 7",
    "SELECT 7 FROM t WHERE id = 7",
    "SELECT DISTINCT id FROM t WHERE id = 7",
    "SELECT count(*) FROM t WHERE id = 7",
    "SELECT id FROM t WHERE id = 7 ORDER BY id",
    "SELECT id FROM t WHERE id = 7 LIMIT 1 OFFSET 1",
    "SELECT id FROM t WHERE id = 7 AND g = 1",
    "SELECT id FROM t WHERE id = 7 OR g = 1",
    "SELECT id FROM t WHERE id <> 7",
    "SELECT id FROM t WHERE NOT id = 7",
    "SELECT id FROM t WHERE id NOT IN (7)",
    "SELECT id FROM t WHERE id = 7 AND id = 8",
    "SELECT id FROM t WHERE id = 3 + 4",
    "SELECT id FROM t WHERE id = - 7 + 2",
    "SELECT id FROM t WHERE id = '7'",
    "SELECT id FROM t WHERE id = 7.0",
    "SELECT id FROM t WHERE id = 7e0",
    "SELECT id FROM t WHERE id = CAST('7' AS INT)",
    "SELECT id FROM t WHERE id = CAST(7 AS TINYINT)",
    "SELECT id FROM t WHERE id + 1 = 8",
    "SELECT id FROM t WHERE id = 99999999999",
    "SELECT id FROM t WHERE id = 99999999999999999999",
    "SELECT id FROM t WHERE g = 300",
    "SELECT id FROM t WHERE u = -1",
    "SELECT id FROM t WHERE u = 9223372036854775809",
    "SELECT id FROM t WHERE id = NULL",
    "SELECT id FROM t WHERE id = TRUE",
    'SELECT id FROM t WHERE "Name" = 7',
    "SELECT id FROM t WHERE big = 'b1'",
    "SELECT id FROM t WHERE at = '2024-01-01T05:00:00Z'",
    "SELECT id FROM t WHERE \"Name\" = E'n\\'7'",
    "SELECT id FROM t WHERE \"Name\" = 'n\\7'",
    "SELECT id FROM t WHERE \"Name\" = X'61'",
    "SELECT id FROM t WHERE \"Name\" LIKE 'n7'",
    "SELECT id FROM t WHERE id = 7 -- AND g = 9",
    "SELECT id FROM t /* WHERE */ WHERE id = 7",
    "SELECT id FROM few WHERE id = 7",
    "SELECT a.id FROM t a, t b WHERE a.id = 7",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id = 7",
    "SELECT id FROM t WHERE id = 7 UNION ALL SELECT id FROM t WHERE id = 8",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE id = 7)",
    "SELECT id FROM t WHERE id BETWEEN 7 AND 7",
    "SELECT id FROM t WHERE id = ANY (ARRAY[7])",
    f"SELECT id FROM t WHERE id IN ({', '.join(map(str, range(70)))})",
)
WRONG = (
    "SELECT nothing FROM t WHERE id = 7",
    "SELECT id FROM gone WHERE id = 7",
    "SELECT id FROM t WHERE id = 'seven'",
    "SELECT id FROM t WHERE id = 7 8",
    "SELECT id FROM t WHERE id = 'a",
    "SELECT id FROM t WHERE id = $1",
    "SELECT id FROM t WHERE id = 7; SELECT 1",
    "DELETE FROM t WHERE id = 7",
)


async def answered(stream: BatchStream) -> tuple[pa.Schema, list[dict[str, Any]]]:
    rows = [row async for batch in stream for row in batch.to_pylist()]
    return stream.schema, sorted(rows, key=repr)


@asynccontextmanager
async def executor(spec: StoredTable) -> AsyncIterator[LocalExecutor]:
    made = LocalExecutor(EngineSettings(2))
    try:
        assert not made.install(
            snapshot({"t": spec, "v": "SELECT id, g FROM t", "few": "SELECT id FROM t LIMIT 9"})
        )
        yield made
    finally:
        made.close()


async def specs(folder: Path) -> list[StoredTable]:
    whole = await stored(folder, ROWS, 4)
    cut = await parted(folder, ROWS, "bucket(8, id)", key="cut", keys=KEYS)
    return [replace(whole, keys=KEYS), cut]


async def check(
    one: LocalExecutor, plain: LocalExecutor, given: Statement, *, is_one: bool
) -> None:
    """Hold an answer against that of the same rows without a key."""
    for _ in range(2):
        stream = await one.execute(new_query_id(), given)
        assert isinstance(stream, RowsStream) is is_one, given.sql
        expected = await plain.execute(new_query_id(), given)
        schema, rows = await answered(stream)
        wanted, wanted_rows = await answered(expected)
        assert schema.equals(wanted, check_metadata=True), given.sql
        assert rows == wanted_rows, given.sql
        assert stream.reads_only_catalog == expected.reads_only_catalog
        assert stream.written is None


@pytest.mark.parametrize("number", [0, 1])
async def test_lookups_answer_as_the_engine_does(tmp_path: Path, number: int) -> None:
    spec = (await specs(tmp_path))[number]
    async with executor(spec) as one, executor(replace(spec, keys=None)) as plain:
        for sql in LOOKUPS:
            await check(one, plain, Statement(sql, {}), is_one=True)
        for sql in OTHERS:
            try:
                await answered(await plain.execute(new_query_id(), Statement(sql, {})))
            except CarawayError as exc:
                with pytest.raises(type(exc)) as raised:
                    await answered(await one.execute(new_query_id(), Statement(sql, {})))
                assert _without_values(raised.value.message) == _without_values(exc.message)
                continue
            await check(one, plain, Statement(sql, {}), is_one=False)


def _without_values(message: str) -> str:
    """Which value the engine stumbles over first is a matter of chance."""
    return re.sub(r"'n'-?\d+'", "", message)


async def test_what_is_wrong_is_said_as_ever(tmp_path: Path) -> None:
    spec = (await specs(tmp_path))[0]
    async with executor(spec) as one, executor(replace(spec, keys=None)) as plain:
        for sql in WRONG:
            said = []
            for each in (one, plain, one):
                with pytest.raises(CarawayError) as raised:
                    await answered(await each.execute(new_query_id(), Statement(sql, {})))
                said.append((type(raised.value), raised.value.message))
            assert said[0] == said[1] == said[2], sql


@pytest.mark.parametrize(
    ("sql", "values", "is_one"),
    [
        ("SELECT * FROM t WHERE id = $1", {"1": 7}, True),
        ("SELECT * FROM t WHERE id = :id", {"id": -4}, True),
        ("SELECT * FROM t WHERE id IN (?, ?)", {"1": 7, "2": 8}, True),
        ("SELECT * FROM t WHERE g = $g AND big = $big", {"g": 2, "big": "b9"}, True),
        ("SELECT id FROM t WHERE g = $g AND big = 'b9'", {"g": 2}, True),
        ("SELECT id FROM t WHERE id IN ($a, $a)", {"a": 7}, True),
        ("SELECT * FROM t WHERE id = $1", {"1": 2**40}, False),
        ("SELECT * FROM t WHERE id = $1", {"1": 7.0}, False),
        ("SELECT * FROM t WHERE id = $1", {"1": None}, False),
        ("SELECT $2 FROM t WHERE id = $1", {"1": 7, "2": 8}, False),
    ],
)
async def test_bound_values_are_looked_up_like_literals(
    tmp_path: Path, sql: str, values: dict[str, Any], is_one: bool
) -> None:
    spec = (await specs(tmp_path))[1]
    async with executor(spec) as one, executor(replace(spec, keys=None)) as plain:
        await check(one, plain, Statement(sql, values), is_one=is_one)


async def test_a_shape_is_planned_once(tmp_path: Path) -> None:
    async with executor((await specs(tmp_path))[0]) as one:
        assert one.session is not None
        lookups = one.session.lookups
        seen: list[str] = []
        probe = lookups._probe
        lookups._probe = lambda sql: seen.append(sql) or probe(sql)  # type: ignore[func-returns-value]
        for number in range(20):
            for sql in (
                f"SELECT g FROM t WHERE id = {number}",
                f"SELECT g FROM t WHERE g > {number}",
            ):
                await answered(await one.execute(new_query_id(), Statement(sql, {})))
        assert len(seen) == 2
        for number in range(600):
            sql = f"SELECT g AS g{number} FROM t WHERE id = 7"
            await answered(await one.execute(new_query_id(), Statement(sql, {})))
        assert len(lookups._known) == 512


async def test_a_lookup_reads_what_is_not_in_memory(tmp_path: Path) -> None:
    spec = (await specs(tmp_path))[1]
    statement = Statement("SELECT id FROM t WHERE id = 7", {})
    async with executor(spec) as one:
        assert await answered(await one.execute(new_query_id(), statement)) == (
            pa.schema([FIELDS[0]]),
            [{"id": 7}],
        )
    path_of(spec, 0).unlink()
    async with executor(spec) as one:
        await one.execute(new_query_id(), Statement("SELECT id FROM t WHERE id = 7", {}))
        with pytest.raises(CarawayError, match=r"dataset 't': .* damaged or missing"):
            for number in range(100):
                sql = f"SELECT id FROM t WHERE id = {number}"
                await one.execute(new_query_id(), Statement(sql, {}))


async def test_each_lookup_reads_the_position_that_its_statement_names(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "v": range(100), "g": range(100)})
    keys = Keys(("id",), indexes=(LookupColumns(("v",)),))
    spec = await bucketed(tmp_path, rows, 4, "id", keys)
    moved = (Op.DELETE, {"id": 7}), (Op.UPSERT, {"id": 500, "v": 7})
    entries = [
        await logged(tmp_path, spec, (Op.UPSERT, {"id": 7, "v": 70}), number=1),
        await logged(tmp_path, spec, *moved, number=2),
    ]
    logs = [tuple(entries[:count]) for count in range(3)]
    asked = (
        "SELECT v FROM t WHERE id = 7",
        "SELECT * FROM v WHERE id IN (7, 500)",
        "SELECT id FROM t WHERE v = 7",
        "SELECT id, v FROM t WHERE v = 70",
    )
    async with executor(spec) as one, executor(spec) as other:
        for count in (0, 1, 2, 1, 0, 2, 2):
            for sql in asked:
                given = Statement(sql, {}, logs={spec.key: logs[count]})
                # The same statement without a lookup: it has a second condition that is always
                # true.
                plain = replace(given, sql=f"{sql} AND id + 0 = id")
                stream = await one.execute(new_query_id(), given)
                assert isinstance(stream, RowsStream)
                expected = await other.execute(new_query_id(), plain)
                assert not isinstance(expected, RowsStream)
                assert stream.reads_only_catalog == expected.reads_only_catalog == (not count)
                assert await answered(stream) == await answered(expected), (count, sql)

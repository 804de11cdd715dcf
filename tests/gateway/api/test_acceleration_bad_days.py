"""Accelerated datasets whose sources change, fail or contain invalid rows, in one runtime."""

import asyncio
import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gateway.api.accelerating import (
    FIRST,
    at_version,
    count,
    manifest,
    refresh,
    standing,
    write,
)
from tests.gateway.api.failing_refreshes import failed
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

CHANGED: dict[str, dict[str, Any]] = {
    "removed": {"id": [100], "t": [FIRST + 100]},
    "added": {"id": [100], "t": [FIRST + 100], "v": ["new"], "w": [1.5]},
    "retyped": {"id": ["a100"], "t": [FIRST + 100], "v": ["new"]},
}


def put(folder: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), folder / "orders.parquet")


async def rows(runtime: Running, sql: str = "SELECT * FROM orders ORDER BY id") -> Any:
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("how", sorted(CHANGED))
async def test_a_full_refresh_has_the_columns_that_the_source_has_then(
    tmp_path: Path, how: str
) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        put(tmp_path, CHANGED[how])
        # At once, before the source is polled again.
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await rows(runtime) == pa.table(CHANGED[how]).to_pylist()
        write(tmp_path, 10)
        await refresh(runtime)
        await at_version(runtime, 3)
        assert await count(runtime, "v IS NOT NULL") == 10


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("removed", "its source has no column 'v' any more; request a refresh with"),
        ("retyped", "column 'id' is of type int64, but newer rows have another type"),
    ],
)
async def test_an_append_rejects_columns_of_another_kind(
    tmp_path: Path, how: str, words: str
) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest("refresh_mode: append")) as runtime:
        await at_version(runtime, 1)
        put(tmp_path, CHANGED[how])
        await refresh(runtime)
        assert words in await failed(runtime)
        assert (await standing(runtime))["status"] == "ready"
        assert await count(runtime, "id < 10 AND v IS NOT NULL") == 10
        write(tmp_path, 20)
        await refresh(runtime)
        assert "error" not in await at_version(runtime, 2)
        assert await count(runtime) == 20
        put(tmp_path, CHANGED[how])
        await refresh(runtime, refresh_mode="full")
        await at_version(runtime, 3)
        assert await rows(runtime) == pa.table(CHANGED[how]).to_pylist()


async def test_an_append_keeps_to_its_columns_and_lets_numbers_grow(tmp_path: Path) -> None:
    small = pa.table({"id": pa.array([1], pa.int32()), "t": [FIRST], "v": ["a"]})
    pq.write_table(small, tmp_path / "orders.parquet")
    async with running(tmp_path, manifest("refresh_mode: append")) as runtime:
        await at_version(runtime, 1)
        put(tmp_path, {"id": [1 << 40], "t": [FIRST + 1], "v": ["b"], "w": [1.5]})
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await rows(runtime) == [
            {"id": 1, "t": FIRST, "v": "a"},
            {"id": 1 << 40, "t": FIRST + 1, "v": "b"},
        ]


@pytest.mark.parametrize("mode", ["full", "append"])
async def test_a_source_that_fails_in_the_middle_leaves_the_version(
    tmp_path: Path, mode: str
) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest(f"refresh_mode: {mode}")) as runtime:
        await at_version(runtime, 1)
        number = 400_000
        table = pa.table(
            {
                "id": range(number),
                "t": [FIRST + 100 + each for each in range(number)],
                "v": [f"v{each}" for each in range(number)],
            }
        )
        path = tmp_path / "orders.parquet"
        pq.write_table(table, path, row_group_size=20_000, use_dictionary=False)
        # The footer is intact, so reading starts normally.
        data = bytearray(path.read_bytes())
        middle = len(data) * 3 // 4
        data[middle : middle + 50_000] = b"\xff" * 50_000
        path.write_bytes(data)
        await refresh(runtime)
        assert await failed(runtime)
        assert await count(runtime) == 10
        write(tmp_path, 30)
        await refresh(runtime)
        assert "error" not in await at_version(runtime, 2)
        assert await count(runtime) == 30


TWICE = {"id": [1, 2, 1], "t": [FIRST] * 3, "v": ["first", "b", "last"]}
ALIKE = {"id": [1, 2, 1], "t": [FIRST] * 3, "v": ["first", "b", "first"]}


@pytest.mark.parametrize(
    ("action", "columns", "wanted"),
    [
        ("", TWICE, "primary key (id) = 1 is duplicated"),
        ("upsert", TWICE, "primary key (id) = 1 is duplicated"),
        ("upsert", ALIKE, "primary key (id) = 1 is duplicated"),
        ("drop", TWICE, ["first", "b"]),
        ("upsert_dedup", TWICE, "is duplicated with other values"),
        ("upsert_dedup", ALIKE, ["first", "b"]),
        ("upsert_dedup_by_row_id", TWICE, ["last", "b"]),
    ],
)
async def test_rows_with_one_primary_key_in_a_full_load(
    tmp_path: Path, action: str, columns: Any, wanted: Any
) -> None:
    put(tmp_path, {"id": [1], "t": [FIRST], "v": ["old"]})
    keys = ["primary_key: id", *([f"on_conflict: {{id: {action}}}"] if action else [])]
    async with running(tmp_path, manifest(*keys)) as runtime:
        await at_version(runtime, 1)
        put(tmp_path, columns)
        await refresh(runtime)
        if isinstance(wanted, str):
            assert wanted in await failed(runtime)
            wanted = ["old"]
        else:
            await at_version(runtime, 2)
        assert [each["v"] for each in await rows(runtime)] == wanted
        assert await rows(runtime, "SELECT v FROM orders WHERE id = 1") == [{"v": wanted[0]}]


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        ("", "primary key (id) = 1 is duplicated"),
        ("drop", ["old", "c"]),
        ("upsert", ["new", "c"]),
        ("upsert_dedup", ["new", "c"]),
        ("upsert_dedup_by_row_id", ["new", "c"]),
    ],
)
async def test_appended_rows_with_an_existing_primary_key(
    tmp_path: Path, action: str, wanted: Any
) -> None:
    put(tmp_path, {"id": [1], "t": [FIRST], "v": ["old"]})
    keys = ["primary_key: id", *([f"on_conflict: {{id: {action}}}"] if action else [])]
    async with running(tmp_path, manifest("refresh_mode: append", *keys)) as runtime:
        await at_version(runtime, 1)
        put(tmp_path, {"id": [1, 3], "t": [FIRST + 1] * 2, "v": ["new", "c"]})
        await refresh(runtime)
        if isinstance(wanted, str):
            assert wanted in await failed(runtime)
            wanted = ["old"]
        else:
            await at_version(runtime, 2)
        assert [each["v"] for each in await rows(runtime)] == wanted


async def test_a_unique_index_rejects_duplicates(tmp_path: Path) -> None:
    """Duplicates are found across the partitions that the primary key alone would create."""
    put(tmp_path, {"id": [1], "t": [FIRST], "v": ["a"]})
    keys = ("primary_key: id", "indexes: {v: unique}")
    async with running(tmp_path, manifest(*keys)) as runtime:
        await at_version(runtime, 1)
        values = [f"v{each}" for each in range(2000)]
        put(tmp_path, {"id": range(2001), "t": [FIRST] * 2001, "v": [*values, "v7"]})
        await refresh(runtime)
        assert "(v) = 'v7' is duplicated" in await failed(runtime)
        assert await rows(runtime, "SELECT id FROM orders") == [{"id": 1}]
        put(tmp_path, {"id": range(2002), "t": [FIRST] * 2002, "v": [*values, None, None]})
        await refresh(runtime)
        await at_version(runtime, 2)
        assert await rows(runtime, "SELECT id FROM orders WHERE v = 'v7'") == [{"id": 7}]


DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)  # without a zone


KEYS = [
    (pa.array(["a", "b"]).dictionary_encode(), "'a'"),
    (
        pa.array([MOMENT, MOMENT.replace(day=1)], pa.timestamp("us", "UTC")),
        "TIMESTAMP '2024-02-29 01:02:03.456789Z'",
    ),
    (pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(9, 2)), "1.50"),
    (pa.array([DAY, DAY.replace(day=1)]), "DATE '2024-02-29'"),
    (pa.array([MOMENT, MOMENT.replace(day=1)]), "TIMESTAMP '2024-02-29 01:02:03.456789'"),
    (pa.array([True, False]), "true"),
    (pa.array([b"a", b"b"]), "X'61'"),
    (pa.array([1.5, 2.5]), "1.5"),
]
INDEXED = ("primary_key: k", "indexes: {k: unique}", "indexes: {k: enabled}")


@pytest.mark.parametrize(
    ("keys", "literal", "key"),
    [
        # The same code finds keys of all kinds; the gate has every type of one kind.
        pytest.param(*each, key, marks=pytest.mark.full if kind and place > 1 else ())
        for kind, key in enumerate(INDEXED)
        for place, each in enumerate(KEYS)
    ],
    ids=str,
)
async def test_keys_are_of_any_type(tmp_path: Path, keys: pa.Array, literal: str, key: str) -> None:
    put(tmp_path, {"k": keys, "t": [FIRST] * 2, "v": ["x", "y"]})
    async with running(tmp_path, manifest(key)) as runtime:
        await at_version(runtime, 1)
        for _ in range(3):
            assert await rows(runtime, f"SELECT v FROM orders WHERE k = {literal}") == [{"v": "x"}]
        if "enabled" in key:
            return
        put(tmp_path, {"k": pa.concat_arrays([keys, keys[:1]]), "t": [FIRST] * 3, "v": ["z"] * 3})
        await refresh(runtime)
        assert "duplicated" in await failed(runtime)
        assert await rows(runtime, "SELECT v FROM orders ORDER BY v") == [{"v": "x"}, {"v": "y"}]


async def test_concurrent_refresh_requests_become_two_refreshes(tmp_path: Path) -> None:
    write(tmp_path, 10)
    async with running(tmp_path, manifest()) as runtime:
        await at_version(runtime, 1)
        write(tmp_path, 20)
        await asyncio.gather(*(refresh(runtime) for _ in range(10)))

        async def look() -> bool:
            told = await standing(runtime)
            return "refresh" not in told and told["version"]["number"] >= 2

        await eventually(look, "what was asked for is done")
        await refresh(runtime)
        told = await at_version(runtime, 3)
        assert told["version"]["number"] <= 4, "one runs and one waits, however many ask"
        assert await count(runtime) == 20


async def test_the_source_answers_for_joins_and_views_over_the_dataset(tmp_path: Path) -> None:
    write(tmp_path, 100)
    keys = ("refresh_sql: SELECT * FROM orders WHERE id < 10", "on_zero_results: use_source")
    views = "\n        views:\n          - {name: late, sql: 'SELECT * FROM orders WHERE id > 5'}\n"
    async with running(tmp_path, manifest(*keys) + views) as runtime:
        await at_version(runtime, 1)
        join = "SELECT a.id FROM orders a JOIN orders b ON a.id = b.id WHERE a.id = {}"
        assert await rows(runtime, join.format(3)) == [{"id": 3}]
        assert await rows(runtime, join.format(42)) == [{"id": 42}]
        assert await rows(runtime, "SELECT id FROM late WHERE id = 7") == [{"id": 7}]
        assert await rows(runtime, "SELECT id FROM late WHERE id = 42") == [{"id": 42}]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("primary_key: nope", "its `primary_key` names column 'nope', which its source does not"),
        ("partition_by: nope", "its `partition_by` names column 'nope'"),
        ("sort_by: nope", "its `sort_by` names column 'nope'"),
        ("indexes: {nope: enabled}", "has no column 'nope', which its `primary_key` or `indexes`"),
        ("refresh_sql: SELECT id FROM orders, indexes: {v: enabled}", "has no column 'v'"),
        ("refresh_mode: append, refresh_append_overlap: 1s", "time_column 't' is list"),
    ],
)
async def test_missing_or_unsuitable_columns_are_named(
    tmp_path: Path, keys: str, words: str
) -> None:
    put(tmp_path, {"id": [1], "t": [[FIRST]], "v": ["a"]})
    async with running(tmp_path, manifest(*keys.split(", "))) as runtime:
        assert words in await failed(runtime)
        (listed,) = (await runtime.api.get("/v1/datasets?status=true")).json()
        assert words in listed["error_message"]

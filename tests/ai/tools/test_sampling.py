"""Samples of tables: which statements they run, over the engine that runs them."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_ai.tools import arguments, sampling
from caraway_ai.tools.data_access import RowLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import InvalidRequestError, NotFoundError
from tests.kit.tool_data import LIMITS, EngineData

CALLER = ToolCaller()
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "price": [5.0, None, 7.5, 1.0],
        "Name": ["b", "a", None, "a"],
        'odd, "one"': [4, 3, 2, 1],
    }
)


async def call(data: EngineData, tool: str, given: object, limits: RowLimits = LIMITS) -> Any:
    """Call a tool as a toolbox does: with checked arguments."""
    (found,) = [each for each in sampling.tools(data, limits) if each.name == tool]
    return await found.run(arguments.check(tool, found.parameters, given), CALLER)


async def top(order_by: str, rows: pa.Table = ROWS, **more: Any) -> list[int]:
    data = EngineData({"t": rows})
    found = await call(data, "top_n_sample", {"tbl": "t", "order_by": order_by, **more})
    return [row["id"] for row in found]


@pytest.mark.parametrize(
    ("order_by", "ids"),
    [
        ("id", [1, 2, 3, 4]),
        ("id DESC", [4, 3, 2, 1]),
        ("ID desc", [4, 3, 2, 1]),
        ("id\tDESC", [4, 3, 2, 1]),
        ("  id\n DESC  ", [4, 3, 2, 1]),
        ("name, id desc", [4, 2, 1, 3]),
        ("name,id", [2, 4, 1, 3]),
        ('"Name" ASC, "id" DESC', [4, 2, 1, 3]),
        ("price DESC NULLS LAST", [3, 1, 4, 2]),
        ("price nulls first, id", [2, 4, 1, 3]),
        ("price DESC", [2, 3, 1, 4]),
        ('"odd, ""one"""', [4, 3, 2, 1]),
        ('"odd, ""one""" DESC, id', [1, 2, 3, 4]),
    ],
)
async def test_rows_come_in_the_order_that_is_asked_for(order_by: str, ids: list[int]) -> None:
    assert await top(order_by) == ids


@pytest.mark.parametrize(
    "order_by",
    [
        ",",
        "id,",
        "id,,price",
        ", id",
        "id DESC ASC",
        "id NULLS",
        "id NULLS FIRST DESC",
        "(SELECT 1)",
        "1",
        "random()",
        "id; DROP TABLE t",
        "id) --",
        '"',
        '""',
        '"id',
        'id" DESC',
        '"id" "price"',
        "id /* c */",
    ],
)
async def test_what_is_no_column_of_the_table_is_refused(order_by: str) -> None:
    data = EngineData({"t": ROWS})
    with pytest.raises(InvalidRequestError, match=r"no column|order_by"):
        await call(data, "top_n_sample", {"tbl": "t", "order_by": order_by})
    assert data.statements == []


@given(st.text(alphabet="abAB\", ;'()-\t\né", max_size=12))
@settings(max_examples=60, deadline=None)
def test_no_text_of_an_order_reads_anything_but_columns(text: str) -> None:
    rows = pa.table({"a": [1], "B": [2], 'a"b': [3], "a,b": [4], "é": [5]})
    data = EngineData({"t": rows})
    try:
        found = asyncio.run(call(data, "top_n_sample", {"tbl": "t", "order_by": text}))
    except InvalidRequestError:
        assert data.statements == []
    else:
        assert found == rows.to_pylist()


async def test_a_name_in_two_cases_is_that_of_its_spelling() -> None:
    rows = pa.table({"id": [1, 2], "Key": [1, 2], "key": [2, 1]})
    assert await top("key", rows) == [2, 1]
    assert await top('"Key"', rows) == [1, 2]
    assert await top("Key", rows) == [1, 2]
    assert await top("KEY", rows) == [2, 1]


async def test_a_name_that_two_columns_may_be_is_refused_with_both() -> None:
    rows = pa.table({"id": [1], "Key": [1], "kEy": [1]})
    with pytest.raises(InvalidRequestError, match="may be 'Key' and 'kEy'; write it as it is"):
        await top("key", rows)


async def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidRequestError, match="table 't': no column 'prise'; did you mean"):
        await top("prise")
    with pytest.raises(InvalidRequestError) as caught:
        await top("x" * 10_000)
    assert len(caught.value.message) < 400


async def test_a_limit_is_ten_rows_unless_it_is_given() -> None:
    rows = pa.table({"id": list(range(200))})
    assert await top("id", rows) == list(range(10))
    assert await top("id", rows, limit=100) == list(range(100))
    for limit in (0, 101, "5", 2.5, True):
        with pytest.raises(InvalidRequestError, match="limit"):
            await top("id", rows, limit=limit)


async def test_random_rows_are_rows_of_the_table_each_at_most_once() -> None:
    rows = pa.table({"id": list(range(50))})
    data = EngineData({"t": rows})
    found = await call(data, "random_sample", {"tbl": "t", "limit": 40})
    ids = [row["id"] for row in found]
    assert len(ids) == 40 == len(set(ids))
    assert set(ids) <= set(range(50))
    # Forty of fifty in their order by chance: one in 40!.
    assert ids != sorted(ids)
    assert await call(data, "random_sample", {"tbl": "t", "limit": 100}) != []


async def test_random_rows_of_an_empty_table_are_none() -> None:
    data = EngineData({"t": ROWS.slice(0, 0)})
    assert await call(data, "random_sample", {"tbl": "t"}) == []
    assert await call(data, "top_n_sample", {"tbl": "t", "order_by": "id"}) == []
    assert await call(data, "sample_distinct_columns", {"tbl": "t"}) == {
        name: [] for name in ROWS.column_names
    }


async def test_distinct_values_leave_out_null_and_repetitions() -> None:
    data = EngineData({"t": ROWS})
    assert await call(data, "sample_distinct_columns", {"tbl": "t"}) == {
        "id": [1, 2, 3, 4],
        "price": [1.0, 5.0, 7.5],
        "Name": ["a", "b"],
        'odd, "one"': [1, 2, 3, 4],
    }


@pytest.mark.parametrize(
    ("cols", "found"),
    [
        (["id"], ["id"]),
        (["ID", "id", '"id"'], ["id"]),
        (["name"], ["Name"]),
        (['odd, "one"'], ['odd, "one"']),
        (['"odd, ""one"""'], ['odd, "one"']),
        ([], ["id", "price", "Name", 'odd, "one"']),
    ],
)
async def test_distinct_values_are_of_the_columns_asked_for(
    cols: list[str], found: list[str]
) -> None:
    data = EngineData({"t": ROWS})
    values = await call(data, "sample_distinct_columns", {"tbl": "t", "cols": cols})
    assert list(values) == found


async def test_a_column_named_like_the_alias_of_values_has_its_own() -> None:
    data = EngineData({"t": pa.table({"v": [3, 1], "w": [5, 4]})})
    assert await call(data, "sample_distinct_columns", {"tbl": "t"}) == {"v": [1, 3], "w": [4, 5]}


async def test_values_of_every_kind_of_type_can_be_sampled() -> None:
    maps = pa.array([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int64()))
    rows = pa.table(
        {
            "none": pa.nulls(2),
            "bytes": [b"\x00", b"\xff"],
            "parts": [{"a": 1}, {"a": 1}],
            "many": [[1, 2], []],
            "maps": maps,
            "words": pa.array(["a", "a"]).dictionary_encode(),
            "is_so": [True, False],
        }
    )
    data = EngineData({"t": rows})
    found = await call(data, "sample_distinct_columns", {"tbl": "t"})
    assert {name: len(values) for name, values in found.items()} == {
        "none": 0, "bytes": 2, "parts": 1, "many": 2, "maps": 2, "words": 1, "is_so": 2,
    }  # fmt: skip


async def test_only_the_first_columns_of_a_wide_table_are_sampled() -> None:
    wide = pa.table({f"c{number:03}": [number] for number in range(60)})
    data = EngineData({"t": wide})
    found = await call(data, "sample_distinct_columns", {"tbl": "t"})
    assert list(found) == wide.column_names[:50]
    last = await call(data, "sample_distinct_columns", {"tbl": "t", "cols": ["c059"]})
    assert last == {"c059": [59]}
    with pytest.raises(InvalidRequestError, match="cols"):
        await call(data, "sample_distinct_columns", {"tbl": "t", "cols": ["c001"] * 51})


async def test_rows_above_the_limits_are_cut_and_it_is_said() -> None:
    data = EngineData({"t": ROWS})
    few = RowLimits(2, 1000)
    for tool, more in (("random_sample", {}), ("top_n_sample", {"order_by": "id"})):
        found = await call(data, tool, {"tbl": "t", **more}, few)
        assert len(found["rows"]) == 2
        assert found["is_truncated"] is True


@pytest.mark.parametrize("tool", ["random_sample", "sample_distinct_columns", "top_n_sample"])
async def test_tables_are_found_however_they_are_written_or_refused(tool: str) -> None:
    data = EngineData({"t": ROWS, 'odd "name"': ROWS, "s.u": ROWS})
    order = {"order_by": "id"} if tool == "top_n_sample" else {}
    for written in ("t", "T", "public.t", '"t"', "s.u", "S.U"):
        assert await call(data, tool, {"tbl": written, **order})
    for unknown in ("nothing", "s.t", "t u"):
        with pytest.raises(NotFoundError, match="table"):
            await call(data, tool, {"tbl": unknown, **order})

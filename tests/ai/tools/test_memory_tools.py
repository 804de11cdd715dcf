"""Memories of models: facts are stored once in a dataset, and are returned by age."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from caraway_ai.tools.arguments import ToolArgumentsError
from caraway_ai.tools.data_access import RowLimits
from caraway_ai.tools.memory_tools import MemoryTools
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import InvalidRequestError, NotFoundError, QueryForbiddenError
from caraway_core.ids import PrincipalId, TableName
from tests.kit.tool_data import LIMITS, EngineData

WRITER = ToolCaller(PrincipalId("w"), may_write=True)
READER = ToolCaller(PrincipalId("r"))
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("value", pa.string()),
        ("created_by", pa.string()),
        ("created_at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass
class Memories:
    """A store whose rows are those of `EngineData` from then on."""

    name: TableName
    rows: list[dict[str, Any]] = field(default_factory=list)

    async def add(self, values: Sequence[str], caller: ToolCaller) -> Sequence[str]:
        ids = [secrets.token_hex(4) for _ in values]
        for id_, value in zip(ids, values, strict=True):
            self.keep(value, timedelta(), id_, caller)
        return ids

    def keep(self, value: str, age: timedelta, id_: str = "x", caller: ToolCaller = WRITER) -> None:
        at = datetime.now(UTC) - age
        row = {"id": id_, "value": value, "created_by": caller.principal, "created_at": at}
        self.rows.append(row)

    def data(self) -> EngineData:
        return EngineData({self.name: pa.Table.from_pylist(self.rows, SCHEMA)})


def store(name: str = "notes") -> Memories:
    return Memories(TableName(name))


async def call(
    of: Memories, tool: str, caller: ToolCaller, limits: RowLimits = LIMITS, **given: Any
) -> Any:
    box = Toolbox()
    box.sources = [MemoryTools(of.data(), of, limits)]
    return await box.call(tool, given, caller)


async def test_facts_come_back_newest_first() -> None:
    of = store()
    of.keep("old", timedelta(hours=3))
    of.keep("new", timedelta(minutes=1))
    of.keep("older", timedelta(hours=20))
    found = await call(of, "load_memory", READER)
    assert [row["value"] for row in found] == ["new", "old", "older"]
    assert list(found[0]) == ["id", "value", "created_by", "created_at"]


async def test_facts_of_one_moment_have_one_order() -> None:
    of = store()
    at = datetime.now(UTC)
    for id_ in ("b", "c", "a"):
        of.rows.append({"id": id_, "value": id_, "created_by": "w", "created_at": at})
    found = await call(of, "load_memory", READER)
    assert [row["id"] for row in found] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("last", "values"),
    [
        ("30m", ["1m"]),
        ("2h", ["1m", "1h"]),
        ("1h30m", ["1m", "1h"]),
        ("7d", ["1m", "1h", "2d"]),
        ("36500d", ["1m", "1h", "2d", "9y"]),
        ("90", ["1m"]),
        ("0", []),
    ],
)
async def test_a_period_ends_now(last: str, values: list[str]) -> None:
    of = store()
    of.keep("1m", timedelta(minutes=1))
    of.keep("1h", timedelta(hours=1))
    of.keep("2d", timedelta(days=2))
    of.keep("9y", timedelta(days=9 * 365))
    found = await call(of, "load_memory", READER, last=last)
    assert [row["value"] for row in found] == values


@pytest.mark.parametrize("last", ["soon", "-1h", "1e400", "99999999d", "1h'; --", "nan", " "])
async def test_what_is_no_period_is_refused(last: str) -> None:
    with pytest.raises(InvalidRequestError, match="'last'"):
        await call(store(), "load_memory", READER, last=last)


async def test_more_facts_than_fit_are_cut() -> None:
    of = store()
    for number in range(5):
        of.keep(str(number), timedelta(minutes=number))
    cut = await call(of, "load_memory", READER, RowLimits(2, 1000))
    assert [row["value"] for row in cut["rows"]] == ["0", "1"]
    assert cut["is_truncated"] is True


async def test_facts_are_stripped_and_kept_once_in_their_order() -> None:
    of = store()
    told = await call(of, "store_memory", WRITER, thoughts=["b ", " a", "b", "a\n", "c d"])
    assert [row["value"] for row in of.rows] == ["b", "a", "c d"]
    assert told == {"stored": [row["id"] for row in of.rows]}
    found = await call(of, "load_memory", READER)
    assert {row["value"] for row in found} == {"a", "b", "c d"}
    assert {row["created_by"] for row in found} == {"w"}


@pytest.mark.parametrize(
    "thoughts",
    [[], [""], ["  \n"], ["ok", "\t"], ["x" * 8193], ["x"] * 101, "x", [1], None],
)
async def test_what_is_no_fact_is_refused_and_nothing_is_kept(thoughts: Any) -> None:
    of = store()
    with pytest.raises(ToolArgumentsError, match="thoughts"):
        await call(of, "store_memory", WRITER, thoughts=thoughts)
    assert of.rows == []


async def test_facts_as_long_and_as_many_as_may_be_are_kept() -> None:
    of = store()
    thoughts = ["x" * 8192, *(str(number) for number in range(99))]
    assert len((await call(of, "store_memory", WRITER, thoughts=thoughts))["stored"]) == 100


async def test_a_key_that_may_only_read_keeps_nothing() -> None:
    of = store()
    with pytest.raises(QueryForbiddenError, match="a key that ends in :rw"):
        await call(of, "store_memory", READER, thoughts=["x"])
    assert of.rows == []


async def test_a_caller_without_the_dataset_learns_nothing_of_it() -> None:
    of = store()
    of.keep("secret", timedelta())
    other = ToolCaller(may_write=True, tables=frozenset({TableName("other")}))
    with pytest.raises(NotFoundError, match="no table 'notes'"):
        await call(of, "load_memory", other)
    with pytest.raises(NotFoundError, match="no table 'notes'"):
        await call(of, "store_memory", other, thoughts=["x"])
    assert len(of.rows) == 1


async def test_the_dataset_may_have_an_odd_name() -> None:
    of = store('my "odd" notes')
    of.name = TableName("My-Notes")
    data = EngineData({"My-Notes": pa.Table.from_pylist([], SCHEMA)})
    data.find = lambda name, caller: data.tables(caller)[0]  # type: ignore[method-assign]
    box = Toolbox()
    box.sources = [MemoryTools(data, of, LIMITS)]
    assert await box.call("load_memory", {}, READER) == []
    assert len((await box.call("store_memory", {"thoughts": ["x"]}, WRITER))["stored"]) == 1

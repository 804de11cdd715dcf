import asyncio

import pyarrow as pa
import pytest

from caraway_core.errors import PartLostError
from caraway_executor.answers import kept_tables
from caraway_executor.answers.kept_tables import KeptTables
from tests.kit.deadlines import eventually

TABLES = (pa.table({"v": [1]}), pa.table({"v": [2]}))


async def test_tables_are_taken_once() -> None:
    kept = KeptTables()
    kept.keep("q/1", TABLES)
    assert await kept.take("q/1") is TABLES
    with pytest.raises(PartLostError, match="not taken in time"):
        await kept.take("q/1")


async def test_only_tables_of_the_call_are_forgotten() -> None:
    kept = KeptTables()
    kept.keep("q/1", TABLES)
    kept.keep("q/2", TABLES)
    kept.forget("q/1")
    kept.forget("q/3")
    with pytest.raises(PartLostError):
        await kept.take("q/1")
    assert await kept.take("q/2") is TABLES


async def test_tables_that_nobody_takes_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tables, "KEPT_S", 0.01)
    kept = KeptTables()
    kept.keep("q/1", TABLES)

    async def is_empty() -> bool:
        return len(kept) == 0

    await eventually(is_empty, "the tables are let go")
    with pytest.raises(PartLostError):
        await kept.take("q/1")


async def test_tables_that_were_taken_leave_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tables, "KEPT_S", 0.0)
    kept = KeptTables()
    kept.keep("q/1", TABLES)
    await kept.take("q/1")
    kept.keep("q/1", TABLES)
    kept.forget("q/1")
    monkeypatch.setattr(kept_tables, "KEPT_S", 60.0)
    kept.keep("q/1", TABLES)
    for _ in range(3):  # Timers of the earlier ones would let go of these now.
        await asyncio.sleep(0)
    assert await kept.take("q/1") is TABLES

"""Nested-loop joins fail where they would have to spill: the engine would lose rows."""

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.errors import OutOfMemoryQueryError
from caraway_core.statements import Statement
from caraway_engine.execution.contexts import Contexts
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import session
from tests.kit.tables import parquet

LARGE = pa.table({"k": [(n * 7919) % 5000 for n in range(4_000)]})
SMALL = pa.table({"k": [(n * 977) % 5000 for n in range(900)]})
LIMIT_BYTES = 20_000
"""A quarter of it is for products, and the small table takes more."""
JOINS = (
    "SELECT count(*) FROM l LEFT JOIN s ON l.k > s.k + 4000",
    "SELECT count(*) FROM s RIGHT JOIN l ON l.k > s.k + 4000",
    "SELECT count(*) FROM l FULL JOIN s ON l.k > s.k + 4900",
    "SELECT count(*) FROM l WHERE EXISTS (SELECT 1 FROM s WHERE l.k > s.k + 4000)",
    "SELECT count(*) FROM l WHERE NOT EXISTS (SELECT 1 FROM s WHERE l.k > s.k + 4000)",
    "SELECT count(*) FROM l WHERE k = 1 OR EXISTS (SELECT 1 FROM s WHERE l.k > s.k + 4000)",
    "SELECT count(*) FROM l JOIN s ON l.k > s.k + 4900",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(scope="module")
def limited(folder: Path) -> Session:
    specs = {"l": parquet(folder / "l", LARGE, 1), "s": parquet(folder / "s", SMALL, 1)}
    return session(specs, memory_limit_bytes=LIMIT_BYTES)


@pytest.fixture(scope="module")
def unlimited(folder: Path, limited: Session) -> Session:
    specs = {"l": parquet(folder / "l2", LARGE, 1), "s": parquet(folder / "s2", SMALL, 1)}
    return session(specs)


async def count(of: Session, sql: str) -> int:
    batches = [each async for each in of.start(Statement(sql, {}))]
    return int(pa.Table.from_batches(batches).column(0)[0].as_py())


@pytest.mark.parametrize("sql", JOINS)
async def test_a_join_that_does_not_fit_is_an_error(limited: Session, sql: str) -> None:
    with pytest.raises(OutOfMemoryQueryError) as caught:
        await count(limited, sql)
    assert "runtime.query.memory_limit" in caught.value.message


@pytest.mark.parametrize("sql", JOINS)
async def test_a_join_that_fits_is_answered(unlimited: Session, sql: str) -> None:
    assert await count(unlimited, sql) == in_memory(loaded(SessionContext()), sql)


def test_the_engine_still_loses_rows_when_it_spills() -> None:
    """If this fails, the engine was mended, and `unspilled` may go."""
    contexts = Contexts(EngineSettings(2, memory_limit_bytes=LIMIT_BYTES), measured=False)
    spilling, unlimited = loaded(contexts.serial), loaded(SessionContext())
    found = [in_memory(spilling, sql) for sql in JOINS]
    right = [in_memory(unlimited, sql) for sql in JOINS]
    assert sum(one != other for one, other in zip(found, right, strict=True)) >= 4


def test_products_of_both_kinds_have_one_memory() -> None:
    pools = Contexts(EngineSettings(2, memory_limit_bytes=LIMIT_BYTES), measured=False)._pools
    assert pools.unspilled.size_bytes == pools.serial.size_bytes
    assert pools.unspilled.runtime.config_internal is not pools.serial.runtime.config_internal


def in_memory(context: SessionContext, sql: str) -> int:
    return int(context.sql(sql).to_pydict()["count(*)"][0])


def loaded(context: SessionContext) -> SessionContext:
    for name, table in (("l", LARGE), ("s", SMALL)):
        # Each batch is read by itself, and the join spills between them.
        context.from_arrow(pa.Table.from_batches(table.to_batches(64)), name)
    return context

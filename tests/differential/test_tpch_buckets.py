"""TPC-H over accelerated tables with lineitem and orders bucketed by order key."""

from collections.abc import Set
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine.rows.plain import plain_schema
from caraway_engine.sessions.sessions import Session
from tests.differential import tpc
from tests.differential.comparing import difference
from tests.kit.clusters import EAGER, TINY, in_process_cluster
from tests.kit.engine import session
from tests.kit.stored import parted, stored

pytestmark = pytest.mark.answers

TEXTS = tpc.tpch_texts()
CUTS = {
    "lineitem": "bucket(8, l_orderkey)",
    "orders": "bucket(8, o_orderkey)",
    "partsupp": "bucket(4, ps_partkey)",
    "part": "bucket(4, p_partkey)",
}
CO_LOCATED = {"q04": True, "q12": True, "q14": False}
QUICK = frozenset({"q03", "q04", "q05", "q09", "q12", "q14", "q16", "q18", "q21"})
"""Those with joins on the keys of buckets, and two without."""


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest) -> dict[str, pa.Table]:
    made = tpc.tpch(request.config.cache.mkdir("caraway-tpc"), "0.01")
    read = {name: pq.read_table(made.folder / name) for name in made.tables}
    return {name: rows.cast(plain_schema(rows.schema)) for name, rows in read.items()}


async def specs(folder: Path, tables: dict[str, pa.Table]) -> dict[str, TableSpec]:
    return {
        name: await parted(folder / "chunks", rows, CUTS[name], key=name)
        if name in CUTS
        else await stored(folder / "chunks", rows, 3, name)
        for name, rows in tables.items()
    }


async def alone(of: Session, sql: str) -> pa.Table:
    stream = of.start(Statement(sql, {}))
    return pa.Table.from_batches([batch async for batch in stream], schema=stream.schema)


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        pytest.param(EAGER, QUICK, id="quick"),
        pytest.param(EAGER, TEXTS.keys() - QUICK, id="eager", marks=pytest.mark.full),
        pytest.param(TINY, TEXTS.keys(), id="tiny", marks=pytest.mark.full),
    ],
)
async def test_answers_are_those_of_one_node(
    tmp_path: Path, tables: dict[str, pa.Table], policy: object, names: Set[str]
) -> None:
    reference = session({name: MemoryTable(rows.schema, rows) for name, rows in tables.items()})
    made = await specs(tmp_path, tables)
    async with in_process_cluster(tmp_path, dict(made), executors=3, policy=policy) as cluster:  # type: ignore[arg-type] # one of two constants
        for name in sorted(names):
            sql = TEXTS[name]
            expected = await alone(reference, sql)
            whole = await alone(reference, tpc.without_limit(sql))
            found = await cluster.execute(sql)
            assert not difference(expected, found, tpc.order(sql, expected, whole)), name


async def test_orders_and_lines_are_colocated(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    async with in_process_cluster(tmp_path, dict(await specs(tmp_path, tables))) as cluster:
        for name, is_in_place in CO_LOCATED.items():
            text = await cluster.explain(TEXTS[name])
            assert ("co-located" in text) is is_in_place, name

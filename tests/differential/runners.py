"""The reference on one node, and all runners that must agree with it.

To add a runner, write an `Opening`: an async context manager that makes a dataset's tables readable
and yields an object that executes statements. Then add it to `RUNNERS`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.ids import new_query_id
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import FilesTable
from caraway_engine.execution.crowd import Crowd
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.join_orders import OrderPolicy
from caraway_engine.rows.plain import plain_schema
from caraway_engine.sessions.reruns import Reruns
from caraway_executor.statements.local import LocalExecutor
from tests.differential.datasets import Dataset


class Distributed(Protocol):
    """Executes statements over the tables of one dataset."""

    async def execute(self, sql: str) -> pa.Table:
        """Return the complete answer with its announced schema.

        Raises:
            QueryError: the statement failed, with the error class of a single node.
        """
        ...

    async def explain(self, sql: str) -> str: ...


Opening = Callable[[Dataset], AbstractAsyncContextManager[Distributed]]


class SingleNode:
    """An executor in this process."""

    def __init__(self, executor: LocalExecutor) -> None:
        self._executor = executor

    async def execute(self, sql: str) -> pa.Table:
        stream = await self._executor.execute(new_query_id(), Statement(sql, {}))
        batches = [batch async for batch in stream]
        # The types of the rows count: the announced ones are those of the plan before coercion.
        return pa.Table.from_batches(batches) if batches else stream.schema.empty_table()

    async def explain(self, sql: str) -> str:
        answer = await self.execute(f"EXPLAIN {sql}")
        return "\n".join(answer.column("plan").to_pylist())


class Plain:
    """A runner over sources without string views."""

    def __init__(self, of: Distributed) -> None:
        self._of = of

    async def execute(self, sql: str) -> pa.Table:
        return self.as_sent(await self._of.execute(sql))

    async def explain(self, sql: str) -> str:
        return await self._of.explain(sql)

    def as_sent(self, answer: pa.Table) -> pa.Table:
        """Return an answer without views, even where it names types."""
        plain = answer.cast(plain_schema(answer.schema))
        columns = [_without_names(each) for each in plain.columns]
        return pa.Table.from_arrays(columns, schema=plain.schema)


def _without_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_text = pa.types.is_string(column.type)
    return pc.replace_substring(column, "Utf8View", "Utf8") if is_text else column


@asynccontextmanager
async def single_node(dataset: Dataset) -> AsyncIterator[Distributed]:
    """The reference: a single node."""
    with installed(2, dataset.snapshot()) as executor:
        yield SingleNode(executor)


@asynccontextmanager
async def other_partitions(dataset: Dataset) -> AsyncIterator[Distributed]:
    """A single node with another partitioning; a statement that differs has no unique answer."""
    with installed(3, _reversed(dataset.snapshot())) as executor:
        yield SingleNode(executor)


class Repeating:
    """A single node that runs each statement twice and returns the second answer.

    The second run begins with the optimized plan of the first. No other statement runs, but the
    engine takes its cores for occupied, so that it runs in one partition.
    """

    def __init__(self, of: SingleNode, crowd: Crowd) -> None:
        self._of = of
        self._crowd = crowd

    async def execute(self, sql: str) -> pa.Table:
        await self._of.execute(sql)
        with self._crowd.entered(1), self._crowd.entered(2):
            return await self._of.execute(sql)

    async def explain(self, sql: str) -> str:
        return await self._of.explain(sql)


@asynccontextmanager
async def repeating(dataset: Dataset) -> AsyncIterator[Distributed]:
    """A single node on which statements repeat while others run."""
    with installed(2, dataset.snapshot()) as executor:
        assert executor.session is not None
        yield Repeating(SingleNode(executor), executor.session.crowd)


def by_chance(chance: Random) -> OrderPolicy:
    """Return the policy that changes each plan that may be changed, whatever the facts."""
    return OrderPolicy(inf, -inf, inf, -inf, pick=chance.choice)


class Shuffling:
    """A single node that joins in any order that may be, and counts the plans that it changed."""

    def __init__(self, of: SingleNode, reruns: Reruns) -> None:
        self._of = of
        reruns.policy = by_chance(Random(0))

    async def execute(self, sql: str) -> pa.Table:
        return await self._of.execute(sql)

    async def explain(self, sql: str) -> str:
        return await self._of.explain(sql)


@asynccontextmanager
async def shuffling(dataset: Dataset) -> AsyncIterator[Distributed]:
    """A single node that joins in an order that chance chooses."""
    with installed(2, dataset.snapshot()) as executor:
        assert executor.session is not None
        yield Shuffling(SingleNode(executor), executor.session._statements.reruns)


@asynccontextmanager
async def early(dataset: Dataset) -> AsyncIterator[Distributed]:
    """A single node whose readers of Parquet filter for every statement that may run again."""
    with installed(2, dataset.snapshot()) as executor:
        assert executor.session is not None
        executor.session._statements.reruns.early_filters_pay = lambda *_: True
        yield SingleNode(executor)


RUNNERS: dict[str, Opening] = {
    "other-partitions": other_partitions,
    "repeating": repeating,
    "shuffling": shuffling,
    "early": early,
}
"""Each suite runs over each of these."""


@contextmanager
def installed(partitions: int, snapshot: CatalogSnapshot) -> Iterator[LocalExecutor]:
    """Run one node over a catalog until the block ends."""
    executor = LocalExecutor(EngineSettings(partitions))
    try:
        failed = executor.install(snapshot)
        assert failed == {}
        yield executor
    finally:
        executor.close()


def _reversed(snapshot: CatalogSnapshot) -> CatalogSnapshot:
    """Read the files of each table in reverse order."""
    tables = {
        name: _reversed_files(spec) if isinstance(spec, FilesTable) else spec
        for name, spec in snapshot.tables.items()
    }
    return replace(snapshot, tables=tables)


def _reversed_files(spec: FilesTable) -> FilesTable:
    (scan,) = spec.scans
    (folder,) = scan.paths
    files = sorted(map(str, Path(folder).glob("*.parquet")), reverse=True)
    return replace(spec, scans=(replace(scan, paths=tuple(files)),))

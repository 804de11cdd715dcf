"""Formats EXPLAIN and EXPLAIN ANALYZE output of distributed queries."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pyarrow as pa

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.work import SourceQuery
from caraway_engine.routing import Described
from caraway_engine.stages import ExchangeRead, ReadMode, Stage
from caraway_scheduler.dispatch.explanations import profiling
from caraway_scheduler.dispatch.tasks.reports import FinishedTask

_MODES = {
    ReadMode.ALL: "all rows",
    ReadMode.OWN: "its own part",
    ReadMode.PARTITION: "its hash partition",
}
SCHEMA = pa.schema([("plan_type", pa.string()), ("plan", pa.string())])


def whole(objection: str | None) -> str:
    """Return why a statement is not distributed."""
    reason = objection or "what it reads is small"
    return f"runs whole on one executor: {reason}"


def listed(
    described: Described,
    executor: Callable[[int], ExecutorId],
    ran: Sequence[FinishedTask] = (),
    answer: "RootCount | None" = None,
) -> str:
    """List the stages, last first, with their executors, inputs and fragments."""
    graph, reads = described.graph, described.reads
    assert graph.root is not None
    lines: list[str] = []
    if answer is None:
        lines.append(
            "exchanges are chosen from estimates here, and from measured sizes at run time"
        )
    by_stage: dict[str, list[FinishedTask]] = {}
    for each in ran:
        by_stage.setdefault(each.stage, []).append(each)
    for stage in (graph.root, *reversed(list(graph.stages.values()))):
        lines.append(_headline(stage, executor))
        lines += [f"  reads {each.stage}: {_read(each)}" for each in stage.readings]
        lines += [f"  reads its share of {table}{reads[table]}" for table in sorted(stage.tables)]
        lines += [
            f"  answered_by_database: {each.sql}"
            for each in stage.works
            if isinstance(each, SourceQuery)
        ]
        lines += [
            f"  joins co-located tables without an exchange: {each}" for each in stage.colocated
        ]
        if stage.hashed:
            keys = ", ".join(f"c{key}" for key in stage.hashed.keys)
            lines.append(f"  partitions its rows by the hash of {keys} into {stage.hashed.count}")
        for each in by_stage.get(stage.name, ()):
            lines.append(_actual(each))
            if where := profiling.line(each):
                lines.append(f"    {where}")
        if stage is graph.root and answer is not None:
            lines.append(f"  {answer.rows} rows, {answer.size_bytes} bytes")
        lines += [f"    {line}" for line in described.fragments[stage.name].splitlines()]
    return "\n".join(lines)


def _read(reading: ExchangeRead) -> str:
    if reading.top is None:
        return _MODES[reading.mode]
    keys = (
        f"c{key.column} {'DESC' if key.is_descending else 'ASC'} "
        f"NULLS {'FIRST' if key.has_nulls_first else 'LAST'}"
        for key in reading.top.keys
    )
    by = f", merged by {', '.join(keys)}" if reading.top.keys else ""
    return f"the best {reading.top.count} rows of each task{by}"


def _headline(stage: Stage, executor: Callable[[int], ExecutorId]) -> str:
    where = sorted({executor(number) for number in range(stage.count)})
    tasks = "1 task" if stage.count == 1 else f"{stage.count} tasks"
    on = "" if stage.layout == "single" and stage.readings else f" on {', '.join(where)}"
    return f"{stage.name}: {stage.note}: {tasks}{on}"


def _actual(ran: FinishedTask) -> str:
    where = ran.executor_id or "the scheduler"
    return (
        f"  task {ran.number} on {where}: {ran.rows} rows, {ran.size_bytes} bytes, "
        f"{ran.elapsed_ms:.1f} ms"
    )


class RootCount:
    """Counts the rows and bytes of the last stage."""

    def __init__(self) -> None:
        self.rows = 0
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch."""
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes


class TextStream:
    """The rows of an EXPLAIN that was assembled in the scheduler."""

    reads_only_catalog = False
    written: TableName | None = None
    schema = SCHEMA

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts: Mapping[str, str] | None = texts
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if the texts were read."""
        return self._texts is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        texts, self._texts = self._texts, None
        if texts is None:
            raise StopAsyncIteration
        return pa.RecordBatch.from_pydict(
            {"plan_type": list(texts), "plan": list(texts.values())}, schema=SCHEMA
        )

    async def aclose(self) -> None:
        """Drop the remaining rows."""
        self._texts = None


class ExplainedStream:
    """The engine's EXPLAIN rows, followed by the cluster's, in the engine's schema."""

    reads_only_catalog = False
    written: TableName | None = None

    def __init__(self, engine: BatchStream, texts: Mapping[str, str]) -> None:
        self._engine = engine
        self._added = TextStream(texts)
        self.schema = engine.schema
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if the texts, which come last, were read."""
        return self._added.is_at_end

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(aiter(self._engine))
        except StopAsyncIteration:
            batch = await anext(self._added)
            if len(self.schema) != len(SCHEMA):
                raise StopAsyncIteration from None
            columns = [
                column.cast(field.type)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ]
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    async def aclose(self) -> None:
        """Close the engine's stream."""
        await self._engine.aclose()

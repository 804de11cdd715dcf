"""Runs statements over remote tables: pushes parts of their plans down to databases."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.statements import MERGES
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable, TableSpec
from caraway_core.work import SourceQuery
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote import natively
from caraway_engine.remote.streams import OwnBatch
from caraway_engine.rows import plain
from caraway_engine.scans import tables
from caraway_engine.sessions import writes
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.folder_inserts import InsertingFiles
from caraway_engine.sessions.folder_writes import WrittenFolder
from caraway_engine.sessions.plans import Startable, StatementPlan
from caraway_engine.stages import fragments
from caraway_engine.stages.stage_schemas import StageSchemas
from caraway_engine.statements import subplans
from caraway_engine.statements.plan_facts import Operation

if TYPE_CHECKING:
    from caraway_engine.remote.pushing import PushedPlan
    from caraway_engine.sessions.registered import Registered
PLAN_TYPE = "answered_by_database"


class AnsweredPlans:
    """Computes and caches what databases can answer of each plan."""

    def __init__(self, registered: "Registered") -> None:
        self._registered = registered
        self._pushed: WeakKeyDictionary[StatementPlan, PushedPlan | None] = WeakKeyDictionary()
        self._lock = Lock()

    def startable(self, plan: StatementPlan, schema: pa.Schema) -> Startable:
        """Return a startable that reads the database's answers, or else the plan unchanged."""
        # Imported here because pyarrow's datasets are slow to import and few statements need them.
        from caraway_engine.remote import streams

        natural = partial(natively.start, plan.dataframe, self._registered.scratch)
        return self._over_answers(plan, schema) or Startable(
            plan, schema, partial(streams.LateStream, natural), is_waiting=True
        )

    def inserting(self, plan: StatementPlan, schema: pa.Schema, table: RemoteTable) -> Startable:
        """Return a startable that inserts rows into a table of a database.

        Raises:
            InvalidQueryError: no rows can be inserted into it.
        """
        from caraway_engine.remote import writing

        (inputs,) = plan.dataframe.logical_plan()._raw_plan.inputs()
        rows = writes.named(self._registered.contexts.main, inputs)
        columns = pa.schema([table.schema.field(name) for name in rows.schema().names])
        run = partial(natively.run, rows, self._registered.scratch)
        made = writing.inserting(table, columns, run)
        return Startable(plan, schema, partial(writing.WriteStream, made, schema), is_waiting=True)

    def inserting_files(self, plan: StatementPlan, schema: pa.Schema) -> Startable:
        """Return a startable that inserts rows into a folder of files.

        Raises:
            InvalidQueryError: the engine changes its columns as it reads them.
        """
        from caraway_engine.remote import writing

        write = plan.facts.write
        assert write is not None
        if self._registered.installed[write.table][1].kind == "view":
            raise InvalidQueryError(
                f"INSERT into dataset '{write.table}' is not supported: its columns have other "
                "names or types than in its files"
            )
        (inputs,) = plan.dataframe.logical_plan()._raw_plan.inputs()
        rows = writes.named(self._registered.contexts.main, inputs)
        run = partial(natively.run, rows, self._registered.scratch)
        plan.dataframe.execution_plan()  # Fails where the engine adds no file, before it has rows.
        insert = partial(self._insert_files, write.table, rows.schema().names)
        made = InsertingFiles(run, insert, self._registered.contexts.waiting_folder)
        return Startable(plan, schema, partial(writing.WriteStream, made, schema), is_waiting=True)

    def _insert_files(self, name: TableName, columns: Sequence[str], rows: Any) -> int:
        """Insert rows that are all there into a folder, and return their number.

        Raises:
            QueryError: it failed. The message names files that were added all the same.
        """
        _, folder = self._registered.installed[name]
        written = WrittenFolder.of_table(self._registered.snapshot.tables[name])
        passed = {"rows": rows.into_view(), "folder": folder}
        with self._registered.inputs.passing((), passed) as token:
            sql = writes.into_input(token + "folder", columns, token + "rows")
            frame = self._registered.contexts.main.sql(sql)
        with written.held():
            before = written.files()
            try:
                (batch,) = frame.collect()
            except Exception as exc:
                error = self._registered.translate(exc, planning=False)
                raise written.failed(error, before) from exc
        return int(batch.column(0)[0].as_py())

    def changing(self, plan: StatementPlan, schema: pa.Schema, table: RemoteTable) -> Startable:
        """Return a startable that updates or deletes rows of a table of a database.

        Raises:
            InvalidQueryError: the database may change other rows.
        """
        from caraway_engine.remote import changing, writing

        (rows,) = plan.dataframe.logical_plan()._raw_plan.inputs()
        context, write = self._registered.contexts.main, plan.facts.write
        assert write is not None
        planner = self._registered.contexts.changing  # It leaves expressions as they are.
        change = changing.planned(planner, write.name, rows, table)
        if change is None:
            return Startable(plan, schema, writes.nothing(context).execute_stream)
        remote_change = changing.changing(table, change)
        return Startable(
            plan, schema, partial(writing.WriteStream, remote_change, schema), is_waiting=True
        )

    def merging(
        self,
        plan: StatementPlan,
        schema: pa.Schema,
        table: RemoteTable,
        planned: Callable[[str], Any],
    ) -> Startable:
        """Return a startable that merges rows into a table; `planned` plans them by their text.

        Raises:
            InvalidQueryError: the database may take other rows, or set other values.
        """
        from caraway_engine.remote import merging, writing

        (source,) = plan.dataframe.logical_plan()._raw_plan.inputs()
        given = subplans.schema(source)
        rows, columns, merge = merging.planned(plan.sql, table, given, planned)
        run = partial(natively.run, rows, self._registered.scratch)
        made = merging.merging(table, columns, merge, run)
        return Startable(plan, schema, partial(writing.WriteStream, made, schema), is_waiting=True)

    def replacing(
        self,
        plan: StatementPlan,
        schema: pa.Schema,
        table: RemoteTable,
        over: Callable[[Table], Callable[[str], Any]],
    ) -> Startable:
        """Return a startable that changes rows of a table by their places.

        `over` returns what plans a text over another table in place of the written one.
        """
        from caraway_engine.remote import replacing, replacing_merges, writing

        write = plan.facts.write
        assert write is not None

        def planned(placed: TableSpec) -> replacing.ReplacedRows:
            plan_text = over(tables.build_table(placed))
            if write.name in MERGES:
                return replacing_merges.planned(plan.sql, table, plan_text)
            logical = plan_text(plan.sql).logical_plan()
            return replacing.changed(self._registered.contexts.main, write.name, logical, table)

        run = partial(natively.run, scratch=self._registered.scratch)
        made = replacing.ReplacingRows(table, planned, run)
        return Startable(plan, schema, partial(writing.WriteStream, made, schema), is_waiting=True)

    def defining(
        self, plan: StatementPlan, schema: pa.Schema, definition: TableDefinition
    ) -> Startable:
        """Return a startable that creates a table with the rows of a plan, or drops one.

        Raises:
            InvalidQueryError: the database cannot keep its columns.
        """
        from caraway_engine.remote import defining, writing

        run = partial(natively.run, plan.dataframe, self._registered.scratch)
        made = defining.defining(definition, schema, run)
        stream = partial(writing.WriteStream, made, writing.COUNTED)
        return Startable(plan, writing.COUNTED, stream, is_waiting=True)

    def explained(self, made: Startable, behind: StatementPlan) -> Startable:
        """Have an EXPLAIN show the statements for databases of the plan behind it.

        EXPLAIN ANALYZE shows those that it sent: the engine runs its own plan, so that it can
        measure each part.
        """
        if not all(map(pa.types.is_string, made.schema.types[:2])):
            return made

        is_run = made.plan.facts.operation is Operation.ANALYZE
        is_query = behind.facts.operation is Operation.QUERY and not behind.is_product
        pushed = self._found(behind) if is_query and not is_run else None

        def start() -> AnsweredExplain:
            rows = made.start()
            answers = tuple(pushed.answers.values()) if pushed else ()
            return AnsweredExplain(rows, lambda: answers or rows.planned, made.schema)

        return replace(made, start=start)

    def refined(self, plan: StatementPlan, analysis: Analysis) -> Analysis:
        """Keep what a database computes in one piece, if that is more than a plain scan.

        If it computes the whole statement, that is one task with a statement for the database.
        """
        pushed = self._found(plan)
        if pushed is None or not any(each.is_reducing for each in pushed.answers.values()):
            return analysis
        if pushed.fragment is None:
            return replace(analysis, reads={}, filters={}, is_answered=True)
        objection = "its database answers a part of it, so it runs whole"
        return replace(analysis, plan=None, objection=objection, reads={}, filters={})

    def _over_answers(self, plan: StatementPlan, schema: pa.Schema) -> Startable | None:
        if plan.facts.operation is not Operation.QUERY or plan.is_product:
            return None
        pushed = self._found(plan)
        # The settings are those of joins of the engine.
        if pushed is None or (pushed.has_joins and plan.settings_off):
            return None
        from caraway_engine.remote import answers, streams

        if pushed.fragment is None:
            (answer,) = pushed.answers.values()
            return Startable(plan, schema, partial(streams.answered, answer, schema))
        context, inputs = self._registered.contexts.main, self._registered.inputs
        made = {name: answers.AnswerDataset(each) for name, each in pushed.answers.items()}
        tables = {name: answers.table(each) for name, each in made.items()}
        try:
            dataframe = fragments.plan(context, pushed.fragment, inputs, (), tables)
            plain.check_same(pa.schema(dataframe.schema()), schema)
        except Exception:  # noqa: BLE001 -- not every plan can be decoded again
            return None
        readings = [each.reading for each in made.values()]
        run = partial(natively.run, dataframe, self._registered.scratch)
        start = partial(streams.PreparedStream, readings, run, schema)
        # Aggregated answers are short, and are fetched completely before the plan starts.
        is_waiting = not all(each.is_reducing for each in pushed.answers.values())
        return Startable(plan, schema, start, is_waiting=is_waiting)

    def _found(self, plan: StatementPlan) -> "PushedPlan | None":
        from caraway_engine.remote import pushing

        with self._lock:
            if plan in self._pushed:
                return self._pushed[plan]
        known = self._registered
        context = known.contexts.main
        optimized = plan.optimized or plan.dataframe.optimized_logical_plan()
        schemas = StageSchemas(context, known.inputs)
        tables = known.snapshot.tables
        pushed_plan = pushing.pushed(context, optimized, plan.facts.uncut, tables, schemas)
        with self._lock:
            self._pushed[plan] = pushed_plan
        return pushed_plan


class AnsweredExplain(OwnStream):
    """The rows of an EXPLAIN, and after them one for each statement that a database answers.

    `queries` is called after the last row, because scans are worded when their plan begins.
    """

    def __init__(
        self, rows: Any, queries: Callable[[], Sequence[SourceQuery]], schema: pa.Schema
    ) -> None:
        self._rows = rows
        self._queries: Callable[[], Sequence[SourceQuery]] | None = queries
        self._schema = schema

    async def __anext__(self) -> Any:
        try:
            return await self._rows.__anext__()
        except StopAsyncIteration:
            queries, self._queries = self._queries, None
            found = queries() if queries is not None else ()
            if not found:
                raise
            kinds, statements = self._schema.types[:2]
            columns = [
                pa.array([PLAN_TYPE] * len(found)).cast(kinds),
                pa.array([each.sql for each in found]).cast(statements),
            ]
            return OwnBatch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        if isinstance(self._rows, OwnStream):
            self._rows.close()

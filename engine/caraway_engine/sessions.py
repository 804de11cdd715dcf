"""A session: one catalog snapshot made readable by SQL. Built once, then only read."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from datafusion import SessionContext, SQLOptions
from datafusion.catalog import Schema, Table
from datafusion.substrait import Producer
from substrait.plan_pb2 import Plan as Substrait

from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    InvalidQueryError,
    QueryError,
    QueryForbiddenError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import CatalogSnapshot, Statement, SystemTable
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.tables import FilesTable, MemoryTable, StoredTable, TableSpec, ViewTable
from caraway_engine import (
    coercion,
    contexts,
    distribution,
    failures,
    fragments,
    object_stores,
    placeholders,
    plain,
    presence,
    scalars,
    shares,
    sharing,
    statements,
    stored,
    tables,
    whole_files,
)
from caraway_engine.contexts import CATALOG, EngineSettings
from caraway_engine.held import Chunks, NoChunks
from caraway_engine.lookups import Lookups
from caraway_engine.positions import Positions
from caraway_engine.stage_schemas import StageSchemas
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.streams import EngineStream
from caraway_engine.system_tables import SystemSchema
from caraway_engine.versions import Shown, Versions, Views

_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_READ_WRITE = SQLOptions().with_allow_ddl(False).with_allow_statements(False)
_CACHED_PLANS = 512
_PRODUCTS_SHARE = 0.25
"""Contexts cannot share a memory pool, so the limit is divided between the two."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Plan:
    dataframe: Any
    effect: statements.Effect
    is_product: bool
    files: presence.SingleFiles
    stored: frozenset[TableName]
    views: Shown = field(default_factory=dict)


class Session:
    """Plans statements over the tables of one snapshot.

    `chunks` are those of accelerated datasets that are in memory.
    """

    def __init__(
        self,
        settings: EngineSettings,
        snapshot: CatalogSnapshot,
        chunks: Chunks | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._spills_to = settings.temp_directory
        self._context_partitions = settings.target_partitions
        measured = not any(map(tables.is_measured_wrongly, snapshot.tables.values()))
        self._context = contexts.new(
            settings, settings.target_partitions, 1 - _PRODUCTS_SHARE, measured
        )
        # Products run in one partition: DataFusion does not stop them at once, and each partition
        # of one that nobody wants any more holds a worker thread. See docs/decisions/0002.
        self._serial = contexts.new(settings, 1, _PRODUCTS_SHARE, measured)
        # These only plan: in them no statistics of whole files get into the plan of a share.
        self._unmeasured = {
            self._context: contexts.without_statistics(settings.target_partitions),
            self._serial: contexts.without_statistics(1),
        }
        self._contexts = (self._context, self._serial, *self._unmeasured.values())
        self._plans: OrderedDict[str, _Plan] = OrderedDict()
        self._analyses: WeakKeyDictionary[_Plan, distribution.Analysis] = WeakKeyDictionary()
        self._schemas: WeakKeyDictionary[_Plan, pa.Schema] = WeakKeyDictionary()
        self._lock = Lock()
        self._view_reads: dict[str, frozenset[str]] = {}
        self._installed: dict[TableName, tuple[TableSpec, Table]] = {}
        self.versions = Versions(chunks or NoChunks(), settings.target_partitions)
        self._add_system_tables(snapshot.system)
        self._positions: Positions[_Plan] = Positions(self._scratch)
        self.lookups = Lookups(snapshot.tables, self._probed)
        self._inputs = fragments.Inputs()
        self._whole_files = whole_files.WholeFiles()
        for context in self._contexts:
            context.catalog(CATALOG).register_schema(INPUT_SCHEMA, self._inputs)

    def install(
        self, *previous: "Session | None", versions: Iterable[stored.Version] = ()
    ) -> dict[TableName, str]:
        """Register every table; what is unchanged since one of `previous` is taken over.

        So are `versions` of accelerated datasets, some rows of which may be in memory already.
        """
        failed: dict[TableName, str] = {}
        known = chain.from_iterable(each.versions for each in previous if each)
        self.versions.add(self.snapshot.tables, [*known, *versions])
        views: dict[TableName, ViewTable] = {}
        kept = [each._installed for each in previous if each]
        for name, spec in self.snapshot.tables.items():
            if isinstance(spec, ViewTable):
                views[name] = spec
                continue
            if isinstance(spec, StoredTable):
                self._register(name, spec, self.versions.by_name[name].table)
                continue
            try:
                self._add_table(name, spec, [each[name] for each in kept if name in each])
            except CarawayError as exc:
                failed[name] = exc.message
            except Exception as exc:
                failed[name] = failures.translate(exc, tables=(), planning=True).message
        failed.update(self._add_views(views))
        return failed

    @property
    def table_names(self) -> Iterable[str]:
        return [*self._installed, *(f"runtime.{name}" for name in self.snapshot.system)]

    def start(self, statement: Statement) -> EngineStream:
        """Plan the statement and begin to run it; blocks while files are listed.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            QueryError: it cannot be planned or started.
        """
        plan = self._plan(statement)
        views = self.versions.views(plan.stored, statement.logs)
        if shown := {**views, **self._pruned(statement, plan, views)}:
            plan = self._positioned(statement, plan, shown, has_changes=bool(views))
        self.versions.fill(plan.stored, plan.views)
        try:
            schema = self._schema(plan)
        except BaseException as exc:
            raise self._translate(exc, planning=False) from exc
        return self._begin(plan, schema, plan.dataframe.execute_stream)

    def _schema(self, plan: _Plan) -> pa.Schema:
        with self._lock:
            known = self._schemas.get(plan)
        if known is None:
            known = coercion.schema(self._context, plan.dataframe)
            with self._lock:
                self._schemas[plan] = known
        return known

    def run(self, task: Task, inputs: Sequence[TaskTable]) -> EngineStream:
        """Plan a fragment and begin to run it; blocks while files are listed.

        Raises:
            ChunksAwayError: rows that it reads are not in memory.
            QueryError: it cannot be planned or started, or does not give what the task says.
        """
        try:
            context = self._context
            found = self.versions.narrowed(task)
            task, held = found.task, found.tables
            narrowed = self._whole_files.narrowed(task.plan, task.shares, self.snapshot.tables)
            fragment, files = (narrowed.fragment, narrowed.tables) if narrowed else (task.plan, {})
            made = {**held, **files}
            dataframe = fragments.plan(context, fragment, self._inputs, inputs, made)
            text = dataframe.logical_plan().display_indent()
            self._fill_whole(text, task)
            is_product = self._is_product(dataframe, text)
            if is_product:
                context = self._serial
                dataframe = fragments.plan(context, fragment, self._inputs, inputs, made)
            schema = pa.schema(dataframe.schema())
            plain.check_same(schema, task.schema)
            start = dataframe.execute_stream
            if narrowed:
                whole_files.check_present(task.shares, made, context)
            elif task.shares:
                plan = self._shared(context, dataframe, text, task, inputs, held)
                start = partial(context.execute, plan, 0)
        except stored.ChunksAwayError:
            raise
        except BaseException as exc:
            raise self._translate(exc, planning=True) from exc
        effect = statements.Effect(written=None, reads_only_catalog=False)
        files_read = self._files(text)
        planned = _Plan(dataframe, effect, is_product, files_read, frozenset(), views=found.views)
        return self._begin(planned, schema, start)

    def _stored(self, plan: str) -> frozenset[TableName]:
        """Return the accelerated datasets whose rows a plan reads, also behind views."""
        if not self.versions.by_name or distribution.is_only_described(plan):
            return frozenset()
        names = presence.tables_read(plan)
        behind = chain.from_iterable(self._view_reads.get(self._bare(name), ()) for name in names)
        return (
            frozenset(map(TableName, map(self._bare, {*names, *behind})))
            & self.versions.by_name.keys()
        )

    def _fill_whole(self, plan: str, task: Task) -> None:
        """Have in memory what a fragment reads under the names of the catalog.

        Raises:
            ChunksAwayError: some of it is not there.
            ExecutionError: it reads a dataset with a log through a view.
        """
        read = self._stored(plan)
        for table in self.versions.views(read, task.logs):
            raise ExecutionError(
                f"a fragment reads dataset '{table}' through a view, where its changes would be "
                "missing; this is a fault of the planner: please report it"
            )
        self.versions.fill(read)

    def pieces(self, table: TableName) -> tuple[shares.ListedFile, ...] | None:
        """List the files that a table is read from now, or None if no share of it can be read.

        Raises:
            QueryError: they cannot be listed.
        """
        if table not in self._installed:
            return None
        if table in self.versions:
            return self.versions.by_name[table].pieces()
        spec, made = self._installed[table]
        if not isinstance(spec, FilesTable) or len(spec.scans) != 1 or made.kind == "view":
            return None
        try:
            planning = self._unmeasured[self._context]
            plan = planning.sql(f"SELECT * FROM {_quoted(table)}").execution_plan()
            return sharing.listed(plan, spec)
        except BaseException as exc:
            raise self._translate(exc, planning=False) from exc

    def _shared(
        self,
        context: SessionContext,
        dataframe: Any,
        text: str,
        task: Task,
        inputs: Sequence[TaskTable],
        held: Mapping[str, Table],
    ) -> Any:
        names = {TableName(self._bare(name)): n for name, n in sharing.reads(text).items()}
        specs = {name: spec for name in names if (spec := self.snapshot.tables.get(name))}
        made = sharing.Sharing(task.shares, names, specs)
        try:
            plan = made.restrict(dataframe.execution_plan(), context, is_measured=True)
            if plan is None:
                unmeasured = self._unmeasured[context]
                dataframe = fragments.plan(unmeasured, task.plan, self._inputs, inputs, held)
                plan = made.restrict(dataframe.execution_plan(), context, is_measured=False)
        except BaseException as exc:
            raise self._translate(exc, planning=False) from exc
        return plan

    def analyse(self, statement: Statement) -> distribution.Analysis:
        """Plan a statement, not to run it here but to see what it asks of a cluster.

        Raises:
            QueryError: it cannot be planned.
        """
        plan = self._plan(statement)
        with self._lock:
            if plan in self._analyses:
                return self._analyses[plan]
        try:
            analysis = distribution.analyse(
                self._context,
                plan.dataframe,
                written=plan.effect.written,
                reads_only_catalog=plan.effect.reads_only_catalog,
                is_product=plan.is_product,
                specs=self.snapshot.tables,
            )
            analysis = replace(analysis, tables=analysis.tables | plan.stored)
        except BaseException as exc:
            raise self._translate(exc, planning=False) from exc
        with self._lock:
            self._analyses[plan] = analysis
        return analysis

    def recall(self, statement: Statement) -> distribution.Analysis | None:
        """Return what `analyse` found before, if it did; never blocks."""
        if statement.parameters or statement.writable:
            return None
        plan = self._cached(statement.sql)
        return self._analyses.get(plan) if plan else None

    def _probed(self, sql: str) -> tuple[Substrait, pa.Schema]:
        """Plan a statement as it is written; also tell the schema of its answer."""
        try:
            dataframe = self._context.sql(sql, options=_READ_ONLY)
            encoded = Producer.to_substrait_plan(dataframe.logical_plan(), self._context).encode()
            plan = Substrait()
            plan.ParseFromString(encoded)
            return plan, coercion.schema(self._context, dataframe)
        except BaseException as exc:
            raise self._translate(exc, planning=True) from exc

    def stage_schemas(self) -> StageSchemas:
        """Answer the questions of one run of the stage planner."""
        return StageSchemas(self._context, self._inputs)

    def _begin(self, plan: _Plan, schema: pa.Schema, start: Callable[[], Any]) -> EngineStream:
        try:
            presence.check(plan.files, self._physical_plan)
            stream = start()
        except BaseException as exc:
            raise self._translate(exc, planning=False) from exc
        return EngineStream(
            stream, schema, plan.effect, plan.is_product, self._translate, plan.views
        )

    def _plan(self, statement: Statement) -> _Plan:
        found = placeholders.find(statement.sql)
        found.check(statement.parameters)
        cacheable = not statement.parameters and not statement.writable
        if cacheable and (plan := self._cached(statement.sql)):
            return plan
        values = {name: scalars.bind(name, v) for name, v in statement.parameters.items()}
        options = _READ_WRITE if statement.writable else _READ_ONLY
        try:
            dataframe = self._context.sql(found.sql, options=options, param_values=values)
            text = dataframe.logical_plan().display_indent()
            is_product = self._is_product(dataframe, text)
            if is_product:
                dataframe = self._serial.sql(found.sql, options=options, param_values=values)
        except BaseException as exc:
            raise self._refine(self._translate(exc, planning=True), statement) from exc
        statements.check_writes(text, statement.writable)
        effect = statements.effect(text)
        if effect.written is not None and effect.written in self.versions:
            raise QueryForbiddenError(
                f"dataset '{effect.written}' is accelerated: its rows are changed at its source, "
                "and come here with a refresh"
            )
        plan = _Plan(dataframe, effect, is_product, self._files(text), self._stored(text))
        if cacheable and plan.effect.reads_only_catalog:
            self._remember(statement.sql, plan)
        return plan

    def _pruned(self, statement: Statement, plan: _Plan, views: Views) -> Shown:
        """Find the partitions that a statement can need, of tables that it does not need whole."""
        tables = self.versions.prunable(plan.stored)
        if not tables or plan.effect.written is not None:
            return {}
        analysis = self.analyse(statement)
        # Of a plan that is not understood nothing is left out.
        return {} if analysis.plan is None else self.versions.pruned(
            tables, analysis.filters, views
        )  # fmt: skip

    def _positioned(
        self, statement: Statement, plan: _Plan, views: Shown, *, has_changes: bool
    ) -> _Plan:
        """Plan a statement over its tables as they are with their logs."""
        cacheable = not statement.parameters and not statement.writable
        if cacheable and (known := self._positions.recall(statement.sql, views)):
            return known
        found = placeholders.find(statement.sql)
        values = {name: scalars.bind(name, v) for name, v in statement.parameters.items()}
        options = _READ_WRITE if statement.writable else _READ_ONLY
        try:
            logical = self._positions.planned(
                views,
                found.sql,
                lambda context: context.sql(found.sql, options=options, param_values=values),
            )
            context = self._serial if plan.is_product else self._context
            dataframe = context.create_dataframe_from_logical_plan(logical)
        except BaseException as exc:
            raise self._translate(exc, planning=True) from exc
        reads_only_catalog = plan.effect.reads_only_catalog and not has_changes
        effect = replace(plan.effect, reads_only_catalog=reads_only_catalog)
        made = replace(plan, dataframe=dataframe, effect=effect, views=views)
        if cacheable and plan.effect.reads_only_catalog:
            self._positions.remember(statement.sql, made)
        return made

    def _is_product(self, dataframe: Any, plan: str) -> bool:
        reads_view = any(
            self._bare(name) in self._view_reads for name in presence.tables_read(plan)
        )
        if not reads_view and not statements.may_join(plan):
            return False
        return statements.is_product(dataframe.optimized_logical_plan().display_indent())

    @staticmethod
    def _bare(name: str) -> str:
        return name.removeprefix("caraway.").removeprefix("public.")

    def _physical_plan(self, name: TableName) -> str:
        plan = self._context.sql(f"SELECT * FROM {_quoted(name)}").execution_plan()
        return str(plan.display_indent())

    def _files(self, plan: str) -> presence.SingleFiles:
        names = presence.tables_read(plan)
        behind = [self._view_reads.get(self._bare(name), ()) for name in names]
        return presence.single_files({*names, *chain.from_iterable(behind)}, self.snapshot.tables)

    @staticmethod
    def _refine(error: QueryError, statement: Statement) -> QueryError:
        if isinstance(error, QueryForbiddenError) and statement.may_write:
            return QueryForbiddenError(
                f"{error.message.split(' ', 1)[0]} is refused: no dataset of this manifest is "
                "`access: read_write`."
            )
        return error

    def _cached(self, sql: str) -> _Plan | None:
        with self._lock:
            plan = self._plans.get(sql)
            if plan:
                self._plans.move_to_end(sql)
            return plan

    def _remember(self, sql: str, plan: _Plan) -> None:
        with self._lock:
            self._plans[sql] = plan
            if len(self._plans) > _CACHED_PLANS:
                self._plans.popitem(last=False)

    def _translate(self, exc: BaseException, *, planning: bool = False) -> QueryError:
        if isinstance(exc, QueryError):
            return exc
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc
        return failures.translate(
            exc, tables=self.table_names, planning=planning, spills_to=self._spills_to
        )

    def _add_table(
        self,
        name: TableName,
        spec: FilesTable | MemoryTable,
        kept: Iterable[tuple[TableSpec, Table]],
    ) -> None:
        if isinstance(spec, FilesTable):
            for context in self._contexts:
                object_stores.register(context, spec)
        # Equal, not the same: a spec that came from another process is a new object each time.
        same = next((table for made_of, table in kept if made_of == spec), None)
        self._register(name, spec, tables.build_table(spec) if same is None else same)

    def _register(self, name: TableName, spec: TableSpec, table: Table) -> None:
        schema_name, _, bare = name.rpartition(".")
        for context in self._contexts:
            catalog = context.catalog(CATALOG)
            if schema_name and schema_name not in catalog.schema_names():
                catalog.register_schema(schema_name, Schema.memory_schema())
            catalog.schema(schema_name or "public").register_table(bare, table)
        self._installed[name] = (spec, table)

    def _add_views(self, views: Mapping[TableName, ViewTable]) -> dict[TableName, str]:
        """Views may read views: keep going round while at least one more can be planned."""
        waiting = dict(views)
        while waiting:
            failed: dict[TableName, str] = {}
            for name, view in waiting.items():
                try:
                    self._add_view(name, view)
                except QueryError as exc:
                    failed[name] = exc.message
            if len(failed) == len(waiting):
                return failed
            waiting = {name: waiting[name] for name in failed}
        return {}

    def _add_view(self, name: TableName, view: ViewTable) -> None:
        try:
            dataframe = self._context.sql(view.sql, options=_READ_ONLY)
            text = dataframe.logical_plan().display_indent()
            if "TableScan: runtime." in text or "TableScan: caraway.runtime." in text:
                raise InvalidQueryError(
                    f"view '{name}' reads a runtime table; only statements may, views may not"
                )
            self._register(name, view, dataframe.into_view())
            names = presence.tables_read(text)
            behind = (self._view_reads.get(other, frozenset()) for other in names)
            self._view_reads[name] = names.union(*behind)
            self._positions.views[name] = (
                view.sql,
                frozenset(map(self._bare, self._view_reads[name])),
            )
        except BaseException as exc:
            raise self._translate(exc, planning=True) from exc

    def _scratch(self) -> SessionContext:
        """Make a context that only plans, and that sees what the others see."""
        context = contexts.without_statistics(self._context_partitions)
        catalog = context.catalog(CATALOG)
        catalog.register_schema("runtime", SystemSchema(self.snapshot.system))
        for name, (_, table) in self._installed.items():
            schema_name, _, bare = name.rpartition(".")
            if schema_name and schema_name not in catalog.schema_names():
                catalog.register_schema(schema_name, Schema.memory_schema())
            catalog.schema(schema_name or "public").register_table(bare, table)
        return context

    def _add_system_tables(self, system: Mapping[TableName, SystemTable]) -> None:
        for context in self._contexts:
            context.catalog(CATALOG).register_schema("runtime", SystemSchema(system))


def _quoted(table: TableName) -> str:
    schema_name, _, bare = table.rpartition(".")
    return f'"{schema_name or "public"}"."{bare}"'

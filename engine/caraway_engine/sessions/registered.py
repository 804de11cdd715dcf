"""The tables and views of one snapshot, as the contexts of a session have them."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from datafusion import ExecutionPlan, SessionContext, SQLOptions
from datafusion.catalog import Table

from caraway_core.errors import CarawayError, InvalidQueryError, QueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.manifest.names import SOURCE_SCHEMA
from caraway_core.protocols.dispatch import CatalogSnapshot
from caraway_core.tables import (
    FilesTable,
    MemoryTable,
    RemoteTable,
    StoredTable,
    TableSpec,
    ViewTable,
)
from caraway_engine import known_faults, stored
from caraway_engine.errors import failures
from caraway_engine.execution import contexts
from caraway_engine.execution.contexts import CATALOG, PUBLIC, Contexts, Pools
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows.held import Chunks, NoChunks
from caraway_engine.scans import object_stores, presence, tables
from caraway_engine.sessions.versions import DatasetVersions
from caraway_engine.stages import fragments
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.statements import bounds, plan_facts, viewing
from caraway_engine.statements.plan_facts import PlanFacts
from caraway_engine.statements.table_schemas import TableSchema

logger = logging.getLogger(__name__)
_INPUTS = f"{INPUT_SCHEMA}."
_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, RecursionError, TypeError)
"""Defects of our own code: their texts do not help users."""
Note = Callable[[TableName | None], None]
READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


class Registered:
    """Makes what a snapshot names known to SQL, and tells what plans read of it.

    `views` has the text of each view and what it reads, in the order in which they can be made.
    """

    def __init__(
        self,
        settings: EngineSettings,
        snapshot: CatalogSnapshot,
        chunks: Chunks | None,
        pools: Pools | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.installed: dict[TableName, tuple[TableSpec, Table]] = {}
        self.views: dict[TableName, tuple[str, frozenset[TableName]]] = {}
        self.versions = DatasetVersions(chunks or NoChunks(), settings.target_partitions)
        self.inputs = fragments.Inputs()
        self.failed: frozenset[TableName] = frozenset()
        self._schemas: dict[str, TableSchema] = {
            PUBLIC: TableSchema(),
            SOURCE_SCHEMA: viewing.SourceSchema(),
        }
        self._stores: dict[str, FilesTable] = {}
        """For each object store a table that is read from it."""
        self.unmeasured = _unmeasured(snapshot.tables)
        self._null_safe: set[TableName] = set()
        """The views that hold IS NOT DISTINCT FROM."""
        self.sizes = bounds.ViewSizes()
        self.contexts = Contexts(settings, measured=not self.unmeasured, pools=pools)
        for context in self.contexts:
            context.catalog(CATALOG).register_schema(INPUT_SCHEMA, self.inputs)
        self.lacking: dict[TableName, TableName] = {}
        """The table that a view lacks, of each view that cannot be planned for want of one."""
        self._view_reads: dict[TableName, frozenset[TableName]] = {}

    def install(
        self,
        previous: Sequence["Registered"],
        versions: Iterable[stored.StoredVersion],
        note: Note,
    ) -> dict[TableName, str]:
        """Register what has changed since the first of `previous`, and take the rest over.

        `note` is told of each view before it is planned, since that may end the process.
        Returns why some of the tables could not be registered.
        """
        failed: dict[TableName, str] = {}
        changed = self._take_over(previous[0]) if previous else self.snapshot.tables
        known = chain.from_iterable(each.versions for each in previous)
        self.versions.add(changed, [*known, *versions])
        for context in self.contexts:
            self._add_schemas(context)
            for files in self._stores.values():
                object_stores.register(context, files)
        views: dict[TableName, ViewTable] = {}
        kept = [each.installed for each in previous]
        for name, spec in changed.items():
            if isinstance(spec, ViewTable):
                views[name] = spec
                continue
            if isinstance(spec, StoredTable):
                self._register(name, spec, self.versions.by_name[name].table)
                continue
            try:
                self._add_table(name, spec, [each[name] for each in kept if name in each])
            except BaseException as exc:
                failed[name] = self._refusal(name, exc)
        failed.update(self._add_views(views, note))
        note(None)
        self.failed = frozenset(failed)
        return failed

    def _take_over(self, base: "Registered") -> Mapping[TableName, TableSpec]:
        """Take over what is the same in an earlier snapshot; returns what is not."""
        specs, before = self.snapshot.tables, base.snapshot.tables
        changed = {
            name: spec
            for name, spec in specs.items()
            if before.get(name) is not spec or name in base.failed or name.startswith(_INPUTS)
        }
        touched = changed.keys() | (before.keys() - specs.keys())
        has_other_views = any(
            isinstance(each.get(name), ViewTable) for name in touched for each in (specs, before)
        )
        for name, (_, reads) in base.views.items():
            # What another view stands for is in the plan of a view, and its name is not.
            if name in specs and (has_other_views or not reads.isdisjoint(touched)):
                changed[name] = specs[name]
        gone = touched | changed.keys()
        self._schemas = {name: schema.copy() for name, schema in base._schemas.items()}
        for name in gone:
            schema, bare = contexts.place(name)
            if schema in self._schemas:
                self._schemas[schema].deregister_table(bare)
        self.installed = {name: each for name, each in base.installed.items() if name not in gone}
        self.views.update((name, each) for name, each in base.views.items() if name not in gone)
        self._view_reads = {name: reads for name, (_, reads) in self.views.items()}
        self._null_safe = base._null_safe - gone
        self.sizes = base.sizes.without(gone)
        self._stores = dict(base._stores)
        self.versions.by_name.update(
            (name, version) for name, version in base.versions.by_name.items() if name not in gone
        )
        return changed

    def scratch(self) -> SessionContext:
        """Make a context that only plans, and that sees what the others see."""
        context = self.contexts.scratch()
        context.catalog(CATALOG).register_schema(INPUT_SCHEMA, self.inputs)
        self._add_schemas(context, {name: each.copy() for name, each in self._schemas.items()})
        return context

    def described(self) -> SessionContext:
        """Make a context for lists of schemas and settings, without what is the runtime's own.

        The engine lists every schema of a catalog, and where its temporary files are.
        """
        context = contexts.without_statistics(1)
        self._add_schemas(context, {k: v for k, v in self._schemas.items() if k != SOURCE_SCHEMA})
        return context

    def stored(self, facts: PlanFacts) -> frozenset[TableName]:
        """Return the accelerated datasets whose rows a plan reads, also behind views."""
        if not self.versions.by_name or facts.is_only_described:
            return frozenset()
        return self._reads(facts) & self.versions.by_name.keys()

    def reads_remote(self, facts: PlanFacts) -> bool:
        """Tell if a plan reads tables that databases keep, also behind views."""
        tables = self.snapshot.tables
        return any(isinstance(tables.get(name), RemoteTable) for name in self._reads(facts))

    def files(self, facts: PlanFacts) -> presence.SingleFiles:
        """Return the files that must be there for a plan, also behind views."""
        return presence.single_files(self._reads(facts), self.snapshot.tables)

    def relations(self) -> known_faults.Relations:
        """Return what of the tables decides how statements are mended."""
        null_safe = frozenset(contexts.place(name)[1] for name in self._null_safe)
        return known_faults.Relations(self.unmeasured, null_safe)

    def is_product(self, dataframe: Any, facts: PlanFacts) -> bool:
        """Tell if a plan multiplies tables."""
        plan = self.joined(dataframe, facts)
        return plan is not None and plan_facts.optimized(plan, facts).has_product

    def joined(self, dataframe: Any, facts: PlanFacts) -> Any | None:
        """Optimize a plan if it may join tables."""
        if not facts.has_join and facts.is_complete:
            return None
        return dataframe.optimized_logical_plan()

    def physical_plan(self, name: TableName) -> ExecutionPlan:
        """Plan to read a whole table."""
        sql = f"SELECT * FROM {contexts.quoted(name)}"
        return self.contexts.main.sql(sql).execution_plan()

    def translate(self, exc: BaseException, *, planning: bool = False) -> QueryError:
        """Return a failure of the engine as one of ours; what is none of its failures is raised."""
        if isinstance(exc, QueryError):
            return exc
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc
        known = (name for name in self.installed if not viewing.is_source(name))
        names = [*known, *(f"runtime.{name}" for name in self.snapshot.system)]
        return failures.translate(exc, tables=names, planning=planning)

    def _add_schemas(
        self, context: SessionContext, schemas: Mapping[str, TableSchema] | None = None
    ) -> None:
        catalog = context.catalog(CATALOG)
        for name, schema in (self._schemas if schemas is None else schemas).items():
            catalog.register_schema(name, schema)
        catalog.register_schema("runtime", viewing.SystemSchema(self.snapshot.system))

    def _schema(self, name: str) -> TableSchema | fragments.Inputs:
        """Return a schema; one that is new is made known to every context."""
        if name == INPUT_SCHEMA:
            return self.inputs
        if name not in self._schemas:
            made = self._schemas[name] = TableSchema()
            for context in self.contexts:
                context.catalog(CATALOG).register_schema(name, made)
        return self._schemas[name]

    def _reads(self, facts: PlanFacts) -> frozenset[TableName]:
        if not facts.is_complete:
            return frozenset(self.installed)
        behind = (self._view_reads.get(name, ()) for name in facts.scans)
        return frozenset({*facts.scans, *chain.from_iterable(behind)})

    def _add_table(
        self,
        name: TableName,
        spec: FilesTable | MemoryTable | RemoteTable,
        kept: Iterable[tuple[TableSpec, Table]],
    ) -> None:
        if isinstance(spec, FilesTable):
            self._stores.update((scan.store.alias, spec) for scan in spec.scans if scan.store)
            for context in self.contexts:
                object_stores.register(context, spec)
        # Equal, not the same: a spec that came from another process is a new object each time.
        same = next((table for made_of, table in kept if made_of == spec), None)
        self._register(name, spec, tables.build_table(spec) if same is None else same)

    def _refusal(self, name: TableName, exc: BaseException) -> str:
        """Return the reason why a table cannot be registered; other tables are not affected."""
        if isinstance(exc, CarawayError):
            return exc.message
        if isinstance(exc, OSError) and exc.strerror:
            return f"its files cannot be read: {exc.strerror}"
        if isinstance(exc, Exception) and not isinstance(exc, _DEFECTS):
            return failures.translate(exc, tables=(), planning=True).message
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc
        logger.error("a table cannot be made", exc_info=exc, extra={"table": name})
        return "its table cannot be made, for a reason that is in the log of the engine"

    def _register(self, name: TableName, spec: TableSpec, table: Table) -> None:
        schema, bare = contexts.place(name)
        self._schema(schema).register_table(bare, table)
        self.installed[name] = (spec, table)

    def _add_views(self, views: Mapping[TableName, ViewTable], note: Note) -> dict[TableName, str]:
        """Views may read views: keep going round while at least one more can be planned."""
        waiting = dict(views)
        while waiting:
            failed: dict[TableName, str] = {}
            for name, view in waiting.items():
                note(name)
                try:
                    self._add_view(name, view)
                except QueryError as exc:
                    failed[name] = exc.message
                    if isinstance(exc, TableNotFoundError):
                        self.lacking[name] = exc.table
                else:
                    self.lacking.pop(name, None)
            if len(failed) == len(waiting):
                return failed
            waiting = {name: waiting[name] for name in failed}
        return {}

    def _add_view(self, name: TableName, view: ViewTable) -> None:
        try:
            size = bounds.measured(view.sql, views=self.sizes)
            context = self.contexts.main
            null_safe = self.relations().null_safe
            with viewing.without_sources():
                framed = known_faults.planned(
                    context,
                    view.sql,
                    lambda text: context.sql(text, options=READ_ONLY),
                    relations=known_faults.Relations(null_safe=null_safe),
                    is_view=True,
                )
            dataframe = framed.dataframe
            facts = plan_facts.of(dataframe.logical_plan())
            if facts.reads_system:
                raise InvalidQueryError(
                    f"view '{name}' reads a runtime table; only statements may, views may not"
                )
            if known_faults.is_null_safe(view.sql, null_safe):
                self._null_safe.add(name)
            self._register(name, view, dataframe.into_view())
            self.sizes.add(name, size)
            self._view_reads[name] = self._reads(facts)
            self.views[name] = framed.sql, self._view_reads[name]
        except BaseException as exc:
            raise self.translate(exc, planning=True) from exc


def ignore(_view: TableName | None) -> None:
    """Take note of nothing."""


def _unmeasured(specs: Mapping[TableName, TableSpec]) -> frozenset[str]:
    """Name the tables whose statistics may not hold, and views, which may read them."""
    wrong = [name for name, spec in specs.items() if tables.is_measured_wrongly(spec)]
    views = [name for name, spec in specs.items() if isinstance(spec, ViewTable)]
    return frozenset(name.rpartition(".")[2] for name in (*wrong, *views)) if wrong else frozenset()

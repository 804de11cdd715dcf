"""Registers the tables and views of a snapshot in the contexts of a session."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from datafusion import ExecutionPlan, SessionContext, SQLOptions
from datafusion.catalog import Table

from caraway_core.errors import QueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.manifest.texts.names import SOURCE_SCHEMA
from caraway_core.statements import MERGES, CatalogSnapshot, Statement
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine import known_faults, stored
from caraway_engine.errors import failures
from caraway_engine.execution import contexts
from caraway_engine.execution.contexts import CATALOG, PUBLIC, Contexts, Pools
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.join_orders import RowFacts, described
from caraway_engine.known_faults import DoubtedRelations
from caraway_engine.rows.held import Chunks, NoChunks
from caraway_engine.scans import object_stores, presence, tables
from caraway_engine.searching import embedding
from caraway_engine.sessions import spec_facts, typed_values
from caraway_engine.sessions.calls import CallingText, StandIn
from caraway_engine.sessions.searches import StatementSearches
from caraway_engine.sessions.versions import DatasetVersions
from caraway_engine.stages import fragments
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.statements import bounds, plan_facts, scalars, statements, viewing
from caraway_engine.statements.plan_facts import Operation, OptimizedFacts, PlanFacts
from caraway_engine.statements.table_schemas import TableSchema
from caraway_engine.table_functions import stand_ins

_INPUTS = f"{INPUT_SCHEMA}."
Note = Callable[[TableName | None], None]
READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


class Registered:
    """The registered tables and views of one snapshot, and what plans read of them.

    `views` has the SQL of each view and the tables that it reads, in dependency order.
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
            PUBLIC: viewing.DatasetSchema(),
            SOURCE_SCHEMA: viewing.SourceSchema(),
        }
        self._facts: dict[TableName, RowFacts | None] = {}
        self._stores: dict[str, TableSpec] = {}
        """One table for each object store, from which the store's settings are taken."""
        self.doubted = spec_facts.doubted(snapshot.tables)
        self.sizes = bounds.ViewSizes()
        self.contexts = Contexts(settings, measured=not self.doubted.unmeasured, pools=pools)
        for context in self.contexts:
            context.catalog(CATALOG).register_schema(INPUT_SCHEMA, self.inputs)
            embedding.register(context, snapshot.embedding.vectors)
        self.lacking: dict[TableName, TableName] = {}
        """The missing table of each view that cannot be planned because a table is missing."""
        self._view_reads: dict[TableName, frozenset[TableName]] = {}
        self.searches = StatementSearches(self)
        self.stand_ins: dict[TableName, StandIn] = {}
        """What stands for the calls in views, by name."""
        self.searching: dict[TableName, frozenset[TableName]] = {}
        """The names of those that each view reads, directly or through other views."""

    def install(
        self,
        previous: Sequence["Registered"],
        versions: Iterable[stored.StoredVersion],
        note: Note,
    ) -> dict[TableName, str]:
        """Register what changed since the first of `previous`, and reuse the rest.

        Calls `note` with each view before planning it, because planning may end the process.
        Returns why tables could not be registered, by table name.
        """
        failed: dict[TableName, str] = {}
        changed = self._take_over(previous[0]) if previous else self.snapshot.tables
        known = chain.from_iterable(each.versions for each in previous)
        self.versions.add(changed, [*known, *versions])
        for context in self.contexts:
            self._add_schemas(context)
            for spec in self._stores.values():
                object_stores.register(context, spec)
        views: dict[TableName, str] = {}
        kept = [each.installed for each in previous]
        for name, spec in changed.items():
            if spec.query is not None:
                views[name] = spec.query
                continue
            if spec.version is not None:
                self._register(name, spec, self.versions.by_name[name].table)
                continue
            try:
                self._add_table(name, spec, [each[name] for each in kept if name in each])
            except BaseException as exc:  # noqa: BLE001 -- a source may raise anything
                failed[name] = failures.reason(name, exc)
        failed.update(self._add_views(views, note))
        note(None)
        self.failed = frozenset(failed)
        return failed

    def _take_over(self, base: "Registered") -> Mapping[TableName, TableSpec]:
        """Reuse what an earlier snapshot has unchanged, and return the tables that changed."""
        specs, before = self.snapshot.tables, base.snapshot.tables
        changed = {
            name: spec
            for name, spec in specs.items()
            if before.get(name) is not spec or name in base.failed or name.startswith(_INPUTS)
        }
        touched = changed.keys() | (before.keys() - specs.keys())
        has_other_views = any(
            spec_facts.is_view(each.get(name)) for name in touched for each in (specs, before)
        )
        for name, (_, reads) in base.views.items():
            # A view's plan has the expansion of the views that it reads, but not their names.
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
        for name, names in base.searching.items():
            if name not in gone:
                self.searching[name] = names
                self.stand_ins.update((each, base.stand_ins[each]) for each in names)
        self._facts = {name: each for name, each in base._facts.items() if name not in gone}
        self.sizes = base.sizes.without(gone)
        self._stores = dict(base._stores)
        self.versions.by_name.update(
            (name, version) for name, version in base.versions.by_name.items() if name not in gone
        )
        return changed

    def scratch(self) -> SessionContext:
        """Create a context for planning only, with the same tables as the other contexts."""
        context = self.contexts.scratch()
        context.catalog(CATALOG).register_schema(INPUT_SCHEMA, self.inputs)
        # A plan keeps the functions of the context that planned it, wherever it runs.
        embedding.register(context, self.snapshot.embedding.vectors)
        self._add_schemas(context, {name: each.copy() for name, each in self._schemas.items()})
        return context

    def described(self) -> SessionContext:
        """Create a context that lists schemas and settings without those internal to the runtime.

        The engine would list every schema of the catalog, and the folder of its temporary files.
        """
        context = contexts.without_statistics(1)
        listed = {k: v for k, v in self._schemas.items() if k != SOURCE_SCHEMA and "." not in k}
        self._add_schemas(context, listed, searching=())
        return context

    def stored(self, facts: PlanFacts) -> frozenset[TableName]:
        """Return the accelerated datasets that a plan reads, directly or through views."""
        if not self.versions.by_name or facts.is_only_described:
            return frozenset()
        return self._reads(facts) & self.versions.by_name.keys()

    def reads_remote(self, facts: PlanFacts) -> bool:
        """Return whether a plan reads remote tables, directly or through views."""
        tables = self.snapshot.tables
        return any(spec_facts.is_external(tables.get(name)) for name in self._reads(facts))

    def written(self, facts: PlanFacts) -> RemoteTable | None:
        """Return the table of a database that a plan writes to, if it does."""
        if facts.write is None or facts.operation is not Operation.WRITE:
            return None
        # Here: pyarrow's datasets are slow to import, and few statements need them.
        from caraway_engine.remote import writing

        return writing.target(self.snapshot.tables.get(facts.write.table))

    def is_folder(self, facts: PlanFacts) -> bool:
        """Return whether a plan inserts rows into a folder of files."""
        if facts.write is None or facts.operation is not Operation.WRITE:
            return False
        spec = self.snapshot.tables.get(facts.write.table)
        return spec is not None and bool(spec.scans)

    def is_replaced(self, facts: PlanFacts) -> bool:
        """Return whether a plan changes rows of a table by their places."""
        from caraway_engine.remote import replacing

        write = facts.write
        if write is None or not (facts.changes_rows or write.name in MERGES):
            return False
        return replacing.is_replaced(self.snapshot.tables.get(write.table))

    def files(self, facts: PlanFacts) -> presence.SingleFiles:
        """Return the files that must exist for a plan, including those read through views."""
        return presence.single_files(self._reads(facts), self.snapshot.tables)

    def fixed_files(self, facts: PlanFacts) -> tuple[str, ...] | None:
        """Return the files of a plan; None if its tables may change in other ways than those."""
        return presence.fixed_files(self._reads(facts), self.snapshot.tables)

    def local_places(self, facts: PlanFacts) -> tuple[str, ...] | None:
        """Return the local files and folders of a plan; None if a table is not of those."""
        return presence.local_places(self._reads(facts), self.snapshot.tables)

    def behind(self, names: Iterable[TableName]) -> frozenset[TableName]:
        """Return tables and views with everything that they read."""
        return frozenset(
            chain.from_iterable((name, *self._view_reads.get(name, ())) for name in names)
        )

    def tables_behind(self, view: TableName) -> frozenset[TableName]:
        """Return the tables that a view reads or searches."""
        _, reads = self.views[view]
        return frozenset(map(TableName, reads)) - self.stand_ins.keys()

    def joins(self, dataframe: object, facts: PlanFacts) -> OptimizedFacts:
        """Return the facts of the joins of a plan."""
        plan = self.joined(dataframe, facts)
        return plan_facts.optimized(plan, facts) if plan else plan_facts.WITHOUT_JOINS

    def joined(self, dataframe: Any, facts: PlanFacts) -> Any | None:
        """Return the optimized plan if the statement may contain a join, or None."""
        if not facts.has_join and facts.is_complete:
            return None
        return dataframe.optimized_logical_plan()

    def facts_of(self, name: TableName) -> RowFacts | None:
        """Return what is known of the rows of a table, or None."""
        if name in self.versions.by_name:
            return self.versions.facts(name)
        if name not in self._facts and name in self.installed:
            self._facts[name] = described.file_facts(*self.installed[name])
        return self._facts.get(name)

    def physical_plan(self, name: TableName) -> ExecutionPlan:
        """Return a physical plan that reads a whole table."""
        sql = f"SELECT * FROM {contexts.quoted(name)}"
        return self.contexts.main.sql(sql).execution_plan()

    def translate(self, exc: BaseException, *, planning: bool = False) -> QueryError:
        """Translate an engine failure to a QueryError; raise it if it is not an engine failure."""
        if isinstance(exc, QueryError):
            return exc
        if isinstance(exc, KeyboardInterrupt | SystemExit):
            raise exc
        listed = [name for name in self.installed if not viewing.is_source(name)]
        listed += (TableName(f"runtime.{name}") for name in self.snapshot.system)
        names = [name for name in listed if viewing.is_readable(name)]
        return failures.translate(exc, tables=names, planning=planning)

    def _add_schemas(
        self,
        context: SessionContext,
        schemas: Mapping[str, TableSchema] | None = None,
        searching: Iterable[str] | None = None,
    ) -> None:
        for name, schema in (self._schemas if schemas is None else schemas).items():
            contexts.add_schema(context, name, schema)
        catalog = context.catalog(CATALOG)
        catalog.register_schema("runtime", viewing.SystemSchema(self.snapshot.system))
        of_views = (name.rpartition(".")[0] for name in self.stand_ins)
        for name in chain(stand_ins.numbered(), of_views) if searching is None else searching:
            catalog.register_schema(name, stand_ins.SearchSchema(name))

    def _schema(self, name: str) -> TableSchema | fragments.Inputs:
        """Return a schema, and register it in every context if it is new."""
        if name == INPUT_SCHEMA:
            return self.inputs
        if name not in self._schemas:
            kind = viewing.CatalogSchema if "." in name else viewing.DatasetSchema
            made = self._schemas[name] = kind(f"{name}.")
            for context in self.contexts:
                contexts.add_schema(context, name, made)
        return self._schemas[name]

    def _reads(self, facts: PlanFacts) -> frozenset[TableName]:
        if not facts.is_complete:
            return frozenset(self.installed)
        behind = (self._view_reads.get(name, ()) for name in facts.scans)
        return frozenset({*facts.scans, *chain.from_iterable(behind)})

    def _add_table(
        self,
        name: TableName,
        spec: TableSpec,
        kept: Iterable[tuple[TableSpec, Table]],
    ) -> None:
        self._stores.update((scan.store.alias, spec) for scan in spec.scans if scan.store)
        for context in self.contexts:
            object_stores.register(context, spec)
        # Compare by value: a spec from another process is a new object each time.
        same = next((table for made_of, table in kept if made_of == spec), None)
        self._register(name, spec, tables.build_table(spec) if same is None else same)

    def _register(self, name: TableName, spec: TableSpec, table: Table) -> None:
        schema, bare = contexts.place(name)
        self._schema(schema).register_table(bare, table)
        self.installed[name] = (spec, table)

    def _add_views(self, views: Mapping[TableName, str], note: Note) -> dict[TableName, str]:
        """Plan views that may read other views; repeat until no more can be planned."""
        waiting = dict(views)
        while waiting:
            failed: dict[TableName, str] = {}
            for name, query in waiting.items():
                note(name)
                self.lacking.pop(name, None)
                try:
                    self._add_view(name, query)
                except QueryError as exc:
                    failed[name] = stand_ins.without_schemas(exc.message)
                    if isinstance(exc, TableNotFoundError):
                        self.lacking[name] = exc.table
            if len(failed) == len(waiting):
                return failed
            waiting = {name: waiting[name] for name in failed}
        return {}

    def _add_view(self, name: TableName, query: str) -> None:
        try:
            size = bounds.measured(query, views=self.sizes)
            context = self.contexts.main
            with viewing.without_sources():
                text = self._calling(name, query)
                shown = {each.name: stand_ins.empty(each.schema) for each in self._shown(text)}
            with viewing.without_sources(), stand_ins.shown(shown):
                framed = known_faults.planned(
                    context,
                    text.sql,
                    lambda text: context.sql(text, options=READ_ONLY),
                    doubted=DoubtedRelations(unmasked=self.doubted.unmasked),
                    is_view=True,
                )
            dataframe = framed.dataframe
            facts = plan_facts.of(dataframe.logical_plan())
            statements.check_view(name, query, facts)
            self._register(name, self.snapshot.tables[name], dataframe.into_view())
            self.sizes.add(name, size)
            reads = self._reads(facts)
            searching = {each for each in reads if stand_ins.is_stand_in(each)}
            if searching:
                self.searching[name] = frozenset(searching)
                reads = reads.union(*(self.stand_ins[each].reads for each in searching))
            self._view_reads[name] = reads
            self.views[name] = framed.sql, self._view_reads[name]
        except BaseException as exc:
            raise self.translate(exc, planning=True) from exc

    def _calling(self, name: TableName, query: str) -> CallingText:
        """Read the calls in the text of a view, and register what stands for them."""
        text = self.searches.calls.read(Statement(query, {}), name)
        for each in text.stand_ins:
            self.stand_ins[each.name] = each
            schema = each.name.rpartition(".")[0]
            for context in self.contexts:
                context.catalog(CATALOG).register_schema(schema, stand_ins.SearchSchema(schema))
        return text

    def _shown(self, text: CallingText) -> Iterable[StandIn]:
        return (*text.stand_ins, *self.searches.calls.of_views(text.sql))

    def queried(self, statement: Statement) -> object:
        """Plan a query as it is written.

        Raises:
            QueryError: it cannot be planned.
        """
        values = scalars.values(statement.parameters)
        plan = partial(self.contexts.main.sql, options=READ_ONLY, param_values=values)
        try:
            return typed_values.planned(statement.sql, values, plan)
        except BaseException as exc:
            raise self.translate(exc, planning=True) from exc


def ignore(_view: TableName | None) -> None:
    """Ignore the view that is about to be planned."""

"""Plans the text of a statement, rewritten and over other tables where it needs that."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from datafusion import SessionContext, SQLOptions
from datafusion.catalog import Table

from caraway_core.ids import TableName
from caraway_core.sqltext import placeholders, writing
from caraway_core.statements import Statement
from caraway_engine import known_faults
from caraway_engine.known_faults import KnownSchemas, PlannedStatement, names
from caraway_engine.sessions import typed_values, writes
from caraway_engine.sessions.positions import Positions, Showable
from caraway_engine.sessions.registered import READ_ONLY, Registered
from caraway_engine.statements import bounds, plan_facts, scalars, viewing
from caraway_engine.statements.plan_facts import PlanFacts

READ_WRITE = SQLOptions().with_allow_ddl(False).with_allow_statements(False)


class StatementFraming:
    """Makes the plan of the engine from the text of a statement."""

    def __init__(self, registered: Registered, positions: Positions) -> None:
        """Take the tables, and the plans over them at positions of their logs."""
        self._registered = registered
        self._contexts = registered.contexts
        self._positions = positions
        self._schemas = KnownSchemas()

    def frame(
        self,
        statement: Statement,
        options: SQLOptions,
        shown: Mapping[TableName, Showable] = MappingProxyType({}),
    ) -> PlannedStatement:
        """Plan a statement, rewritten where needed to avoid known faults of the engine.

        It is over the tables that `shown` substitutes.
        """
        found = placeholders.find(statement.sql)
        found.check(statement.parameters)
        bounds.check(found.sql, statement.parameters, self._registered.sizes)
        values = scalars.values(statement.parameters)
        frame = partial(
            known_faults.planned,
            self._contexts.main,
            plan=lambda text: self.dataframe(statement, text, shown, options),
            parameters=values,
            doubted=self._registered.doubted,
            known=self._schemas,
        )
        return typed_values.planned(found.sql, values, frame)

    def part(
        self,
        statement: Statement,
        sql: str,
        options: SQLOptions = READ_ONLY,
        shown: Mapping[TableName, Showable] = MappingProxyType({}),
    ) -> Any:
        """Plan a part of a statement, with those parameters of the statement that it has."""
        names = placeholders.find(sql).names
        given = {name: each for name, each in statement.parameters.items() if name in names}
        part = replace(statement, sql=sql, parameters=given)
        with viewing.limits_of(statement):
            return self.frame(part, options, shown).dataframe

    def over(self, statement: Statement, facts: PlanFacts, table: Table) -> Callable[[str], object]:
        """Return what plans a text over a table in place of the one that a statement writes."""
        assert facts.write is not None
        names = {target: name for name, target in statement.targets.items()}
        shown = {names.get(facts.write.table, facts.write.table): writes.Other(table)}

        def planned(sql: str) -> object:
            try:
                return self.part(statement, sql, READ_WRITE, shown)
            except BaseException as exc:
                raise self._registered.translate(exc, planning=True) from exc

        return planned

    def dataframe(
        self,
        statement: Statement,
        sql: str,
        shown: Mapping[TableName, Showable],
        options: SQLOptions,
    ) -> Any:
        """Plan the text of a statement over the tables that `shown` and `bound` substitute."""
        values = scalars.values(statement.parameters)
        installed = self._registered.installed
        bound = {name: other for name, other in statement.bound.items() if other in installed}

        def plan(context: SessionContext) -> Any:
            frame = context.sql(sql, options=options, param_values=values)
            if statement.as_changes:
                specs = self._registered.snapshot.tables
                return writes.changes(frame, context, statement, specs)
            return self._redirected(frame, context, statement.targets)

        found = self._registered.stand_ins.keys() & {each.name for each in statement.found or ()}
        if not shown and not bound and not found:
            made = plan(self._contexts.main)
            # Few plans are of writes, and to look at one may optimize parts of it, which may fail.
            if not (statement.writable and writing.may_change(sql)):
                return made
            facts = plan_facts.of(made.logical_plan())
            shown = self._changed(facts, statement.targets) if facts.changes_rows else {}
            if not shown:
                return made
        logical = self._positions.planned(shown, sql, plan, bound, found)
        return self._contexts.main.create_dataframe_from_logical_plan(logical)

    def _changed(
        self, facts: PlanFacts, targets: Mapping[TableName, TableName]
    ) -> Mapping[TableName, writes.Other]:
        """Return the tables over which a change of rows is planned, by the names of datasets."""
        installed = self._registered.installed
        others = {name: writes.Other(installed[target][1]) for name, target in targets.items()}
        if facts.write is not None and facts.write.table in {*installed, *targets}:
            name = facts.write.table
            spec, _ = installed[targets.get(name, name)]
            if spec.written is not None and writes.is_changed_apart(spec):
                others[name] = writes.Other(writes.without_rows(spec.written))
        return others

    def _redirected(
        self, dataframe: Any, context: SessionContext, targets: Mapping[TableName, TableName]
    ) -> object:
        """Redirect an INSERT to the table that `targets` names for its dataset."""
        if not targets:
            return dataframe
        insertion = writes.insertion(dataframe.logical_plan(), targets)
        if insertion is None:
            return dataframe
        rows = {"insertion": insertion.rows(context)}
        with self._registered.inputs.passing((), rows) as token, viewing.with_sources():
            return context.sql(insertion.sql(f"{token}insertion"), options=READ_WRITE)

    def runnable(
        self, dataframe: Any, *, is_product: bool, may_spill: bool, settings_off: frozenset[str]
    ) -> object:
        """Plan a statement again if the main context with default settings must not run it."""
        context = self._contexts.main
        if is_product:
            context = self._contexts.of_product(may_spill=may_spill)
            dataframe = context.create_dataframe_from_logical_plan(dataframe.logical_plan())
        return names.without(context, dataframe, settings_off)

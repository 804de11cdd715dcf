"""Replaces the parts of a plan that a database can answer with reads of its answers.

Joins, groupings, orderings and limits are pushed where the database can compute them. For other
parts the database returns the columns and rows that the plan needs. Conditions that it may evaluate
differently stay in the plan, above its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datafusion import SessionContext
from datafusion.substrait import Producer
from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_core.tables import RemoteTable, TableSpec
from caraway_core.work import SourceQuery
from caraway_engine.remote import datasets, unfolding
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.queries import RemoteQuery
from caraway_engine.remote.relations import Translator
from caraway_engine.stages import naming, safety
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.inputs import INPUT_PREFIX
from caraway_engine.stages.relations import (
    children,
    join_type,
    kind,
    table_name,
    walk,
    with_children,
)
from caraway_engine.stages.stage_schemas import StageSchemas


@dataclass(frozen=True, slots=True)
class PushedPlan:
    """A plan that reads answers as inputs. If `fragment` is None, the only answer is the result.

    If it `has_joins`, some are left to the engine.
    """

    fragment: bytes | None
    answers: Mapping[str, SourceQuery] = field(default_factory=dict)
    has_joins: bool = False


def reads_remote(tables: Mapping[TableName, TableSpec], names: Any) -> bool:
    """Return whether one of the tables is remote."""
    return any(isinstance(tables.get(name), RemoteTable) for name in names)


def pushed(
    context: SessionContext,
    optimized: object,
    uncut: str | None,
    tables: Mapping[TableName, TableSpec],
    schemas: StageSchemas,
) -> PushedPlan | None:
    """Push parts of an optimized plan to databases; return None if it must run unchanged."""
    plan = Plan()
    try:
        plan.ParseFromString(Producer.to_substrait_plan(optimized, context).encode())
    except Exception:  # noqa: BLE001 -- Substrait cannot express it, or it is too deep
        return None
    functions = Functions(plan)
    if safety.objection(plan, uncut, functions):
        return None
    root = plan.relations[0].root
    return _Pushing(functions, tables, schemas).push_plan(unfolding.unfolded(root.input))


class _Pushing:
    """The state of pushing down one plan."""

    def __init__(
        self,
        functions: Functions,
        tables: Mapping[TableName, TableSpec],
        schemas: StageSchemas,
    ) -> None:
        self._functions = functions
        self._tables = tables
        self._schemas = schemas
        self._translator = Translator(functions, tables, datasets.relation)
        self._naming = naming.Naming(functions)
        self._answers: dict[str, SourceQuery] = {}

    def push_plan(self, rel: Rel) -> PushedPlan | None:
        """Push as much as possible, starting at the root of the plan."""
        try:
            answer = self._answer(rel, self._query(rel))
        except NotPushableError:
            pass
        else:
            return PushedPlan(None, {"": answer})
        made = self._pushed(rel)
        if not self._answers or self._is_doubtful(made):
            return None
        has_joins = any(kind(each) in ("join", "cross") for each in walk(made))
        return PushedPlan(self._functions.plan(made), self._answers, has_joins)

    def _query(self, rel: Rel) -> RemoteQuery:
        query = self._translator.query(rel)
        if not query.columns:
            raise NotPushableError("rows without columns")
        return query

    def _pushed(self, rel: Rel) -> Rel:
        """Replace the topmost parts that a database can answer."""
        try:
            query = self._query(rel)
        except NotPushableError:
            pass
        else:
            return self._leaf(rel, query)
        if kind(rel) == "filter":
            return self._divided(rel)
        rels = [self._pushed(each) for each in children(rel)]
        if kind(rel) in ("join", "cross"):
            rels = list(self._naming.apart(rels[0], rels[1], join_type(rel)))
        return with_children(rel, rels)

    def _divided(self, rel: Rel) -> Rel:
        """Push those conditions of a filter that the database can evaluate."""
        conditions = _conjuncts(rel.filter.condition, self._functions)
        below = rel.filter.input
        while kind(below) == "filter":
            conditions = [*_conjuncts(below.filter.condition, self._functions), *conditions]
            below = below.filter.input
        try:
            query = self._query(below)
        except NotPushableError:
            return with_children(rel, [self._pushed(below)])
        left = []
        for each in conditions:
            try:
                test = self._translator.term(each, query)
                query = query.prefiltered(test)
                if not test.is_exact:
                    left.append(each)
            except NotPushableError:
                left.append(each)
        return unfolding.filtered(self._leaf(below, query), left, self._functions)

    def _leaf(self, rel: Rel, query: RemoteQuery) -> Rel:
        """Return a read of an answer. Ordered rows are sorted again, which is cheap."""
        name = f"answer{len(self._answers)}"
        answer = self._answer(rel, query, name)
        self._answers[name] = answer
        leaf = self._schemas.leaf(INPUT_PREFIX + name, answer.schema)
        if kind(rel) == "fetch" and kind(rel.fetch.input) == "sort":
            return with_children(rel.fetch.input, [leaf])
        return leaf

    def _answer(self, rel: Rel, query: RemoteQuery, stage: str = "") -> SourceQuery:
        schema = self._schemas.schema(self._functions.plan(self._apart(rel)), stage)
        return SourceQuery(query.table, query.sql(schema), schema, query.is_reducing)

    def _apart(self, rel: Rel) -> Rel:
        """Give the columns of each join different names, without which it has no schema."""
        rels = [self._apart(each) for each in children(rel)]
        if kind(rel) == "join":
            rels = list(self._naming.apart(rels[0], rels[1], join_type(rel)))
        return with_children(rel, rels)

    def _is_doubtful(self, rel: Rel) -> bool:
        """Return whether a remote table is still read directly, or columns may be mixed up.

        A table may be read directly in a subquery. Columns may be mixed
        up in a union: the engine looks up columns of one input by name in the others.
        """
        rels = list(walk(rel))
        found = (table_name(each) for each in rels if kind(each) == "read")
        return reads_remote(self._tables, found) or any(kind(each) == "set" for each in rels)


def _conjuncts(condition: Expression, functions: Functions) -> Sequence[Expression]:
    if condition.WhichOneof("rex_type") == "scalar_function":
        call = condition.scalar_function
        if functions.name(call.function_reference) == "and":
            return [part for each in call.arguments for part in _conjuncts(each.value, functions)]
    return [condition]

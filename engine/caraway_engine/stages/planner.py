"""Turns a Substrait plan into a graph of stages.

The plan is walked from its leaves up. Each relation joins the fragment of its inputs as long as the
tasks' combined result stays correct. Otherwise the rows go through an exchange. The kind of
exchange is chosen from measured sizes: the graph ends at the stage to be measured, and `advance`
continues from there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_engine.stages import reads
from caraway_engine.stages.early_groups import group_before_joins
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.graph import (
    Cluster,
    ExchangeRead,
    Hashed,
    Measured,
    ReadMode,
    Stage,
    StageGraph,
    TopRows,
)
from caraway_engine.stages.inputs import INPUT_PREFIX
from caraway_engine.stages.naming import Naming
from caraway_engine.stages.parts import StagePart
from caraway_engine.stages.relations import (
    append,
    body,
    field_of,
    kind,
    project,
    subqueries,
    walk,
    width,
)
from caraway_engine.stages.rewriting import lower_semi_joins, reword_own_equalities
from caraway_engine.stages.row_estimates import RowEstimates
from caraway_engine.stages.schemas import TypeSchemas

Visit = Callable[["Planner", Rel, str], StagePart | None]
"""Plans a relation, at its path in the plan; None while something below it must be measured."""


class Planner:
    """Plans one query, and continues after each measurement.

    Decisions are final, so the finished parts of the plan are kept.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        schemas: TypeSchemas,
        divided: frozenset[TableName],
        visits: Mapping[str, Visit],
        joined_rows: Mapping[frozenset[TableName], float] = MappingProxyType({}),
    ) -> None:
        """Take how each kind of relation is planned, `visits.VISITS`, and estimates of joins."""
        self.cluster = cluster
        self.schemas = schemas
        self.functions = Functions(plan)
        self.naming = Naming(self.functions)
        root = reword_own_equalities(plan.relations[0].root.input, self.functions)
        lowered = lower_semi_joins(root, self.functions)
        self._has_subqueries = any(any(True for _ in subqueries(body(rel))) for rel in walk(root))
        self._small = cluster.spread(reads.table_reads(root)) & divided
        self.divided = divided - self._small
        self.estimates = RowEstimates(cluster, self.divided, joined_rows)
        self._root = group_before_joins(
            lowered, self.functions, schemas, self.estimates.may_group_first
        )
        self._visits = visits
        self._stages: dict[str, Stage] = {}
        self._names: dict[str, str] = {}
        self._finished: Mapping[str, Measured] = {}
        self._parts: dict[str, StagePart] = {}
        self._without_columns: set[str] = set()

    def advance(self, finished: Mapping[str, Measured]) -> StageGraph:
        """Plan as far as the sizes of finished stages allow.

        The graph has a root when nothing is left to decide. Every stage of an earlier graph is
        unchanged in later ones.
        """
        self._finished = finished
        part = self.visit(self._root, "")
        root = self._stage(part, "root", note="answer") if part else None
        return StageGraph(dict(self._stages), root)

    def visit(self, rel: Rel, path: str) -> StagePart | None:
        """Plan a relation, or return None while something below it must be measured first."""
        if path in self._parts:
            return self._parts[path]
        filled, extra = self._with_subqueries(rel, path)
        if filled is None:
            return None
        part = self._visits[kind(rel)](self, filled, path)
        if part is not None:
            part = replace(part, readings=tuple(dict.fromkeys((*part.readings, *extra))))
            self._parts[path] = part
        return part

    def _with_subqueries(self, rel: Rel, path: str) -> tuple[Rel | None, tuple[ExchangeRead, ...]]:
        """Plan the subqueries in a relation's expressions and insert their plans."""
        if not self._has_subqueries or not any(True for _ in subqueries(body(rel))):
            return rel, ()
        copy = Rel()
        copy.CopyFrom(rel)
        readings: list[ExchangeRead] = []
        is_whole = True
        for number, each in enumerate(list(subqueries(body(copy)))):
            part = self.visit(each.scalar.input, f"{path}?{number}")
            if part is None:
                is_whole = False
                continue
            part = self.gathered(part, f"{path}?{number}", "subquery")
            readings += part.readings
            each.scalar.input.CopyFrom(part.rel)
        return (copy if is_whole else None), tuple(readings)

    def kept(
        self,
        part: StagePart,
        path: str,
        note: str,
        keys: Sequence[Expression] = (),
        count: int | None = None,
    ) -> tuple[Stage, Measured | None]:
        """End a stage at this part, and keep its rows in place; return the stage and its size.

        Rows that seem too many for a broadcast are hash-partitioned by the keys at once. To do so
        after they have been measured takes a second stage, which reads and writes them again.
        """
        part, hashed = self._spread(part), None
        if keys and self.cluster.policy.seems_large(part.size_bytes):
            count = count or self.cluster.partitions(part.size_bytes)
            part, hashed = _hashed(part, keys, count)
        stage = self._stage(part, path + "!", hashed, note)
        return stage, self._finished.get(stage.name)

    def hashed(
        self, part: StagePart, path: str, keys: Sequence[Expression], count: int, note: str
    ) -> Stage:
        """End a stage at this part that hash-partitions its rows by the key expressions."""
        part, hashed = _hashed(self._spread(part), keys, count)
        return self._stage(part, path + "#", hashed, note)

    def _spread(self, part: StagePart) -> StagePart:
        """Divide a small table among all tasks where its rows end a stage of their own."""
        if not part.is_everywhere or part.readings or not reads.is_row_by_row(part.rel):
            return part
        tables = reads.tables(part.rel)
        if len(tables) > 1 or self._small.isdisjoint(tables):
            return part
        return replace(part, layout="slots", count=self.cluster.slots, tables=frozenset(tables))

    def gathered(
        self, part: StagePart, path: str, note: str, top: TopRows | None = None
    ) -> StagePart:
        """Bring the rows of a part to wherever they are read, if they are not there already.

        With `top` the part has the best rows of each task, and the reader merges them.
        """
        if part.is_everywhere:
            return part
        stage, measured = self.kept(part, path, note)
        size = measured.size_bytes if measured else part.size_bytes
        if top is not None:
            return self._reading(stage, ReadMode.TOP_K, size, top)
        return self.reading(stage, ReadMode.ALL, size)

    def reading(self, stage: Stage, mode: ReadMode, size_bytes: float) -> StagePart:
        """Return the part that reads the output of a stage."""
        if mode is ReadMode.OWN and stage.layout == "single":
            # The output of a single task is complete for every reader, also next to shares of
            # tables.
            mode = ReadMode.ALL
        return self._reading(stage, mode, size_bytes)

    def beside(self, stage: Stage, size_bytes: float) -> StagePart:
        """Return a part in which each slot reads a disjoint portion of a stage's output."""
        own = self._reading(stage, ReadMode.OWN, size_bytes)
        return StagePart(own.rel, size_bytes, "slots", self.cluster.slots, own.readings)

    def _reading(
        self, stage: Stage, mode: ReadMode, size_bytes: float, top: TopRows | None = None
    ) -> StagePart:
        name = INPUT_PREFIX + stage.name
        schema = stage.schema
        for _ in range(stage.hashed.extra if stage.hashed else 0):
            schema = schema.remove(len(schema) - 1)
        rel = self.schemas.leaf(name, schema)
        if stage.name in self._without_columns:
            # An exchange of rows without columns has one column that is not read.
            del rel.read.projection.select.struct_items[:]
        reading = ExchangeRead(stage.name, mode, name, schema, top)
        if mode in (ReadMode.ALL, ReadMode.TOP_K):
            return StagePart(rel, size_bytes, readings=(reading,))
        if mode is ReadMode.PARTITION:
            assert stage.hashed is not None
            return StagePart(rel, size_bytes, "partitions", stage.hashed.count, (reading,))
        return StagePart(rel, size_bytes, stage.layout, stage.count, (reading,))

    def _stage(
        self, part: StagePart, key: str, hashed: Hashed | None = None, note: str = ""
    ) -> Stage:
        if key in self._names:
            return self._stages[self._names[key]]
        name = "answer" if key == "root" else f"s{len(self._stages) + 1}"
        rel = part.rel
        if not width(rel):
            self._without_columns.add(name)
            rel = project(rel, [_one()])
        plan = self.functions.plan(rel)
        stage = Stage(
            name,
            plan,
            self.schemas.schema(plan, name),
            part.layout,
            part.count,
            part.readings,
            part.tables,
            hashed,
            note,
            int(part.size_bytes),
            part.colocated,
        )
        if key != "root":
            self._names[key] = name
            self._stages[name] = stage
        return stage


def _hashed(part: StagePart, keys: Sequence[Expression], count: int) -> tuple[StagePart, Hashed]:
    """Return a part with a column for each key, and how to partition its rows by them."""
    columns = [field_of(each) for each in keys]
    computed = [each for each in keys if field_of(each) is None]
    rel = append(part.rel, computed) if computed else part.rel
    added = iter(range(width(part.rel), width(part.rel) + len(computed)))
    indices = tuple(next(added) if column is None else column for column in columns)
    return replace(part, rel=rel), Hashed(indices, count, len(computed))


def _one() -> Expression:
    expression = Expression()
    expression.literal.i64 = 1
    return expression

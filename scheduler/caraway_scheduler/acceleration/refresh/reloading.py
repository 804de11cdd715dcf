"""From what a dataset asks for to its next version: which rows are loaded, and by what they lie."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.partitions.keys import BucketKey, ByExpression, PartitionBy
from caraway_scheduler.acceleration.recipes import columns, partitioning, statements
from caraway_scheduler.acceleration.recipes.recipes import Recipe
from caraway_scheduler.acceleration.refresh import refresh_events as events
from caraway_scheduler.acceleration.refresh.schedule import Timetable
from caraway_scheduler.acceleration.versions import wishes
from caraway_scheduler.acceleration.versions.head import CurrentVersion
from caraway_scheduler.acceleration.versions.making import StoredSize
from caraway_scheduler.acceleration.versions.version import DatasetVersion
from caraway_scheduler.acceleration.versions.versions import HeldVersion, Successor

_MOST_PARTS = 32
"""So many loads make one version before it is written anew."""


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Rows are parted by buckets of a column, or are all in one."""

    column: str
    is_one: bool = False


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a dataset asks for.

    Rows are parted by `partition_by`, or as `bucketed` says, or not at all.
    """

    name: TableName
    timetable: Timetable
    settings: events.RefreshSettings
    recipe: Recipe
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    bucketed: Bucketed | None = None
    reopens: bool = False
    """Whether the version of an earlier life of the process needs no refresh at the start."""


class Reloading:
    """Makes versions of a dataset; nothing that readers see changes by it."""

    def __init__(
        self,
        plan: LoadPlan,
        head: CurrentVersion,
        schema: Callable[[TableName], pa.Schema],
        size_bytes: Callable[[TableName], int],
        clock: Callable[[], datetime],
        renew: Callable[[TableName], Awaitable[None]] | None,
        progressed: Callable[[StoredSize], None],
    ) -> None:
        """Take what a dataset asks for, and whom to tell how far it is."""
        self._plan = plan
        self._head = head
        self._schema = schema
        self._size_bytes = size_bytes
        self._clock = clock
        self._renew = renew
        self._progressed = progressed

    async def version(self, begin: events.BeginRun, standing: HeldVersion | None) -> Successor:
        """Have the rows of the version stored that is to take the place of what was read."""
        begin = await self._as_set(begin)
        held = self._head.own(standing)
        before = held.version if held else None
        if self._renew is not None:
            # A source of other columns by now would be read as if it had the ones it had.
            await self._renew(self._plan.name)
        recipe, source, now = self._plan.recipe, self._schema(self._plan.name), self._clock()
        cut = self._cut(before)
        # The columns of a view are known when it is read.
        if begin.refresh_sql is None and len(source):
            self._check(source)
        if begin.mode == "full" or held is None or before is None:
            sql = recipe.full(begin.refresh_sql, source, now)
            return await self._stored_anew(standing, sql, cut)
        if begin.refresh_sql is None:
            columns.check_there(self._plan.name, source, before.schema)
        newest = await self._head.maker.number(recipe.newest(before.schema))
        args = (begin.refresh_sql, source, before.schema, newest, now)
        if not recipe.only_adds or len(before.parts) >= _MOST_PARTS:
            return await self._stored_anew(standing, recipe.append(*args), cut, before)
        sql = recipe.added(*args)
        part = await self._head.make(sql, self._progressed, cut)
        if not part.schema.equals(before.schema):
            return await self._stored_anew(standing, recipe.append(*args), cut, before)
        parts = (*before.parts, part) if part.chunks else before.parts
        return self._head.next(held, parts=parts, made_at=now, sql=sql)

    async def _as_set(self, begin: events.BeginRun) -> events.BeginRun:
        """Take the refresh_sql that was set last on any scheduler: a watch of it may be late."""
        if begin.has_own_sql:
            return begin
        plan, written = self._plan, self._plan.settings.refresh_sql
        manifest = wishes.manifest(self._head.subject.origin, written.text if written else "")
        text = await self._head.wishes().sql(manifest)
        if text is None:
            return begin
        return replace(begin, refresh_sql=statements.refresh_sql(text, plan.name))

    def _check(self, source: pa.Schema) -> None:
        """Look whether the source has the columns that the manifest names.

        Raises:
            DatasetError: it has not, or they are of a type that they must not be of.
        """
        plan, recipe = self._plan, self._plan.recipe
        terms = plan.partition_by.terms
        parting = [term.column for term in terms if not isinstance(term, ByExpression)]
        for key, names in (
            ("primary_key", recipe.primary_key),
            ("partition_by", parting),
            ("sort_by", recipe.sort_by),
        ):
            columns.check_named(plan.name, source, key, names)
        if plan.settings.refresh_mode == "append":
            recipe.check_time(source)

    async def _stored_anew(
        self,
        standing: HeldVersion | None,
        sql: str,
        cut: PartitionBy,
        base: DatasetVersion | None = None,
    ) -> Successor:
        """Have all rows stored; those of the base are among them, with its log."""
        head = self._head
        logs = {base.key: base.read_log} if base is not None else {}
        part = await head.make(sql, self._progressed, cut, logs)
        if base is not None:
            columns.check_kept(self._plan.name, base.schema, part.schema)
        return head.anew(standing, part, sql, cut)

    def _cut(self, before: DatasetVersion | None) -> PartitionBy:
        """Say by what rows are parted; a number of buckets is chosen once and kept."""
        plan = self._plan
        if plan.bucketed is None:
            return plan.partition_by
        if before is not None:
            return before.cut
        size_bytes, cores = self._size_bytes(plan.name), self._head.maker.cores
        buckets = partitioning.default_buckets(size_bytes, 0, cores)
        if plan.bucketed.is_one:
            buckets = 1
        return PartitionBy((BucketKey(buckets, plan.bucketed.column),))

"""Makes the next version of a dataset from its load plan: selects rows and partitions them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from caraway_acceleration.recipes import columns, generated, partitioning, statements
from caraway_acceleration.recipes.generated import GeneratedVectors
from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.sources import DatasetSources, VectorModels
from caraway_acceleration.versions import wishes
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_acceleration.versions.making import StoredSize
from caraway_acceleration.versions.version import DatasetVersion
from caraway_acceleration.versions.versions import HeldVersion, Successor
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import DatasetDamagedError, ModelError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.manifest import EmbeddedColumn
from caraway_core.manifest.values.search_columns import NO_SEARCH, SearchColumns
from caraway_core.partitions.keys import BucketKey, ByExpression, PartitionBy
from caraway_core.protocols.embedding import mark_of
from caraway_scheduler.coordination.schedule import Timetable

logger = logging.getLogger(__name__)
_MOST_PARTS = 32
"""The maximum number of parts of a version; the next load then rewrites it as one."""


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Rows are partitioned into buckets by a column, or all in one bucket."""

    column: str
    is_one: bool = False


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The plan by which a dataset is loaded.

    Rows are partitioned by `partition_by`, or as in `bucketed`, or not at all.
    """

    name: TableName
    timetable: Timetable
    settings: events.RefreshSettings
    recipe: Recipe
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    bucketed: Bucketed | None = None
    reopens: bool = False
    """True if a version of an earlier process needs no refresh at the start."""
    search: SearchColumns = NO_SEARCH
    """The columns that can be searched; vectors of some are generated."""
    is_following: bool = False
    """True if it is refreshed when the datasets are that it copies, and has no schedule."""


class LoadProgress(Protocol):
    """Takes note of how far a load has come."""

    def progressed(self, stored: StoredSize) -> None:
        """Note what is stored by now."""
        ...


class Reloading:
    """Makes versions of a dataset without changing what readers see."""

    def __init__(
        self,
        plan: LoadPlan,
        current: CurrentVersion,
        sources: DatasetSources,
        clock: DateClock,
        progress: LoadProgress,
        models: VectorModels | None = None,
    ) -> None:
        """Create it from a plan; `progress` gets the stored size during loads."""
        self._models = models
        self._plan = plan
        self._current = current
        self._sources = sources
        self._clock = clock
        self._progress = progress

    async def version(self, begin: events.BeginRun, standing: HeldVersion | None) -> Successor:
        """Store the rows of the successor of `standing`, and return it."""
        begin = await self._as_set(begin)
        held = self._current.own(standing)
        before = held.version if held else None
        # If the columns of the source changed, it would otherwise be read with the old ones.
        await self._sources.renew(self._plan.name)
        source, now = self._sources.source_schema(self._plan.name), self._clock()
        recipe = await self._recipe(begin, source, before)
        partition_by = self._partition_by(before)
        # The columns of a view are unknown until it is read.
        if begin.refresh_sql is None and len(source):
            self._check(source)
        if begin.mode == "full" or held is None or before is None:
            sql = recipe.full(begin.refresh_sql, source, now)
            try:
                return await self._stored_anew(standing, sql, partition_by)
            except (DatasetDamagedError, OutOfMemoryQueryError) as exc:
                if not recipe.reuses_vectors:
                    raise
                is_damaged = isinstance(exc, DatasetDamagedError)
                why = "are damaged" if is_damaged else "do not fit into memory"
                logger.warning(f"known vectors {why}, and are made again",
                               extra={"dataset": self._plan.name})  # fmt: skip
            sql = replace(recipe, reuses_vectors=False).full(begin.refresh_sql, source, now)
            return await self._stored_anew(standing, sql, partition_by)
        if begin.refresh_sql is None:
            made = [column for each in recipe.vectors for column in each.columns]
            columns.check_there(self._plan.name, source, before.schema, made)
        newest = await self._current.maker.number(recipe.newest(before.schema))
        args = (begin.refresh_sql, source, before.schema, newest, now)
        is_anew = bool(recipe.vectors) and not recipe.reuses_vectors
        if is_anew or not recipe.only_adds or len(before.parts) >= _MOST_PARTS:
            return await self._stored_anew(standing, recipe.append(*args), partition_by, before)
        sql = recipe.added(*args)
        part = await self._current.make(sql, self._progress.progressed, partition_by)
        if not part.schema.equals(before.schema):
            return await self._stored_anew(standing, recipe.append(*args), partition_by, before)
        parts = (*before.parts, part) if part.chunks else before.parts
        return self._current.next(held, parts=parts, made_at=now, sql=sql)

    async def _recipe(
        self, begin: events.BeginRun, source: pa.Schema, before: DatasetVersion | None
    ) -> Recipe:
        """Return the recipe with the columns that are generated by the models as they are now.

        Raises:
            DatasetError: a column cannot be embedded.
            ModelError: a model is not loaded.
        """
        plan = self._plan
        embedded = list(plan.search.embedded)
        if begin.refresh_sql is None and len(source):
            embedded = generated.checked(plan.name, source, embedded)
            await self._check_lengths([each for each in plan.search.embedded
                                       if each not in embedded])  # fmt: skip
        if not embedded or (models := self._models) is None:
            return plan.recipe
        made = []
        for each in embedded:
            embedder = await models.settled_embedder(each.embedder)
            made.append(GeneratedVectors.from_column(each, mark_of(embedder.identity)))
        vectors = tuple(made)
        reuses = before is not None and not generated.is_outdated(before.sql, vectors)
        if before is not None and reuses:
            has = set(before.schema.names)
            reuses = all({each.column, *each.columns} <= has for each in vectors)
        return replace(plan.recipe, vectors=vectors, reuses_vectors=reuses)

    async def _check_lengths(self, embedded: Sequence[EmbeddedColumn]) -> None:
        """Check the first vector that a source brings itself; searches leave out single wrong ones.

        Raises:
            DatasetError: it has another length than those of the model.
        """
        if (models := self._models) is None:
            return
        for each in embedded:
            number = await self._current.maker.number(generated.length_query(self._plan.name, each))
            if number is None:
                continue
            try:
                dimensions = (await models.settled_embedder(each.embedder)).dimensions
            except ModelError:
                continue  # Its vectors can be loaded without the model.
            generated.check_length(self._plan.name, each, number, dimensions)

    async def _as_set(self, begin: events.BeginRun) -> events.BeginRun:
        """Use the `refresh_sql` that was last set on any scheduler, because the watch may lag."""
        if begin.has_own_sql:
            return begin
        plan, written = self._plan, self._plan.settings.refresh_sql
        manifest = wishes.manifest(self._current.subject.names, written.text if written else "")
        text = await self._current.wishes().sql(manifest)
        if text is None:
            return begin
        return replace(begin, refresh_sql=statements.refresh_sql(text, plan.name))

    def _check(self, source: pa.Schema) -> None:
        """Check that the source has the columns that the manifest names.

        Raises:
            DatasetError: a column is missing or has an unsuitable type.
        """
        plan, recipe = self._plan, self._plan.recipe
        terms = plan.partition_by.terms
        parting = [term.column for term in terms if not isinstance(term, ByExpression)]
        for key, names in (
            ("primary_key", recipe.primary_key),
            ("partition_by", parting),
            ("sort_by", recipe.sort_by),
            ("columns", [each.column for each in plan.search.keywords]),
        ):
            columns.check_named(plan.name, source, key, names)
        if plan.settings.refresh_mode == "append":
            recipe.check_time(source)

    async def _stored_anew(
        self,
        standing: HeldVersion | None,
        sql: str,
        partition_by: PartitionBy,
        base: DatasetVersion | None = None,
    ) -> Successor:
        """Store all rows as one new part, including those of `base` and its log."""
        current = self._current
        logs = {base.key: base.read_log} if base is not None else {}
        part = await current.make(sql, self._progress.progressed, partition_by, logs)
        if base is not None:
            columns.check_kept(self._plan.name, base.schema, part.schema)
        return current.anew(standing, part, sql, partition_by)

    def _partition_by(self, before: DatasetVersion | None) -> PartitionBy:
        """Return the partition terms; a number of buckets is chosen once and kept."""
        plan = self._plan
        if plan.bucketed is None:
            return plan.partition_by
        if before is not None:
            return before.partition_by
        size_bytes, cores = self._sources.source_bytes(plan.name), self._current.maker.cores
        buckets = partitioning.default_buckets(size_bytes, 0, cores)
        if plan.bucketed.is_one:
            buckets = 1
        return PartitionBy((BucketKey(buckets, plan.bucketed.column),))

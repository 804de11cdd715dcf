"""The DataFusion contexts of a session."""

import copy
import functools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, udf
from datafusion.catalog import Catalog, Schema, SchemaProvider

from caraway_core.ids import TableName
from caraway_engine.execution import spilling
from caraway_engine.execution.crowd import Crowd
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows import held
from caraway_engine.searching import embedding, functions

CATALOG = "caraway"
PUBLIC = "public"
_MOST_RESERVED_BYTES = 10 * 1024 * 1024
CALLING_ROWS = 256
"""Rows in a batch of a plan that calls models: twice the texts of a call."""
CALLING_PARTITIONS = 2
"""The most partitions of such a plan. A model is called for a few batches at once at most, and each
partition that waits for it occupies a worker thread, which passes on no rows meanwhile."""
_LEAST_KEY_RANGE, _KEY_RANGE = 1024, 1024 * 1024
"""Integer keys of a join in a smaller range are found in an array, and not by their hash.

The array has 4 bytes for each number of the range. The lower limit is the engine's own.
"""
_KEYS_SHARE = 64
"""An array takes at most this fraction of the memory limit: a join fails if there is no room."""
_PRODUCTS_SHARE = 0.25
"""Fraction of the memory limit. Products have a pool of their own, and do not starve statements."""

# The filter that a join makes for its other side waits until all partitions of the join have begun.
_ONE_AFTER_ANOTHER = {"datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false"}
# Computed for each row, this filter takes 0.0 and -0.0 for different keys, and fails for two types.
_EARLY = {**_ONE_AFTER_ANOTHER, "datafusion.execution.parquet.pushdown_filters": "true"}
_UNCHANGED = {"datafusion.optimizer.max_passes": "0"}
_BUILT_ROWS, _BUILT_BYTES = 2 * 1024 * 1024, 64 * 1024 * 1024
"""Rows and bytes of a hash table that one core fills, divided by the number of partitions.

Below, rows of the other side stay where they are: no join parts them by their keys."""
_SORTS = "datafusion.optimizer.repartition_sorts"
_ENDS = "datafusion.optimizer.enable_distinct_aggregation_soft_limit"
_BUILT = "datafusion.optimizer.hash_join_single_partition_threshold"
_LEAST_BUILT_ROWS, _LEAST_BUILT_BYTES = 128 * 1024, 1024 * 1024
"""The engine's own limits."""

# It warns of each rule that fails, with constants of the statement; `SELECT 1 / 0` is enough.
logging.getLogger("datafusion_optimizer").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class PlanRun:
    """How an optimized plan runs.

    If it `filters_early`, readers of Parquet drop rows before they decode all columns. If it
    `sorts_apart`, each partition is sorted by itself, which is wrong for some unions. If it
    `ends_early`, DISTINCT with a LIMIT ends with its last row, which fails over windows.
    """

    filters_early: bool = False
    sorts_apart: bool = False
    ends_early: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """The runtime of contexts that share memory; 0 bytes means no limit."""

    runtime: RuntimeEnvBuilder
    size_bytes: int = 0


class Pools:
    """The memory pools of statements. Sessions share them, as a statement may keep a session alive.

    Contexts made with one `RuntimeEnvBuilder` share one memory pool.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self.main = _pool(settings, 1 - _PRODUCTS_SHARE)
        self.serial = _pool(settings, _PRODUCTS_SHARE)
        self.crowd = Crowd(settings.target_partitions)
        self._settings = settings
        self._planned: dict[tuple[int, bool, PlanRun], SessionContext] = {}

    def planned(self, partitions: int, measured: bool, running: PlanRun) -> SessionContext:
        """Return the context that runs plans that are optimized already.

        It has no tables, because plans bring theirs. Object stores belong to the runtime.
        """
        key = partitions, measured, running
        if key not in self._planned:
            self._planned[key] = self.planned_once(*key)
        return self._planned[key]

    def planned_once(self, partitions: int, measured: bool, running: PlanRun) -> SessionContext:
        """Return a new context that runs plans that are optimized already."""
        special = {
            **_UNCHANGED,
            **(_EARLY if running.filters_early else {}),
            _SORTS: str(running.sorts_apart).lower(),
            _ENDS: str(running.ends_early).lower(),
            _BUILT: str(max(_LEAST_BUILT_BYTES, _BUILT_BYTES // partitions)),
            f"{_BUILT}_rows": str(max(_LEAST_BUILT_ROWS, _BUILT_ROWS // partitions)),
        }
        return new(self._settings, partitions, self.main, measured, special)

    @cached_property
    def unspilled(self) -> Pool:
        """The memory of `serial`, for plans that fail where others spill."""
        # A copy makes a runtime of its own, with the same memory pool and object stores.
        runtime = copy.copy(self.serial.runtime).with_disk_manager_disabled()
        return Pool(runtime, self.serial.size_bytes)

    @cached_property
    def reading(self) -> SessionContext:
        """The context that runs plans that only read rows in memory, in large batches."""
        config = SessionConfig().with_target_partitions(1).with_batch_size(held.BATCH_ROWS)
        return SessionContext(config, self.main.runtime)


class Contexts:
    """The contexts of one session, all with the same tables."""

    def __init__(
        self, settings: EngineSettings, *, measured: bool, pools: Pools | None = None
    ) -> None:
        pools = pools or Pools(settings)
        self._settings = settings
        self._partitions = settings.target_partitions
        self._measured = measured
        self._pools = pools
        self.main = new(settings, settings.target_partitions, pools.main, measured)
        # Products run in one partition. DataFusion does not cancel them at once, and each partition
        # of a cancelled product occupies a worker thread. See docs/decisions/0002.
        self.serial = new(settings, 1, pools.serial, measured, _ONE_AFTER_ANOTHER)
        # Only for planning: plans of shares must not depend on statistics of whole files.
        self.unmeasured = {
            self.main: without_statistics(settings.target_partitions),
            self.serial: without_statistics(1),
        }

    def __iter__(self) -> Iterator[SessionContext]:
        return iter((self.main, self.serial, *self.unmeasured.values()))

    @property
    def crowd(self) -> Crowd:
        """The statements that run in the contexts of all sessions."""
        return self._pools.crowd

    @property
    def reading(self) -> SessionContext:
        """The context that runs plans that only read rows in memory; see `Pools`."""
        return self._pools.reading

    @property
    def waiting_folder(self) -> Path | None:
        """Where rows wait on disk; None: where the system keeps such files."""
        parent = self._settings.temp_directory
        return spilling.folder(parent) if parent else None

    @property
    def has_several_partitions(self) -> bool:
        """Return whether plans run in more than one partition."""
        return self._partitions > 1

    @cached_property
    def calling(self) -> SessionContext:
        """The context that runs plans that call models, in small batches.

        A call takes long, and a batch is only passed on once all its rows have been embedded.
        """
        special = {"datafusion.execution.batch_size": str(CALLING_ROWS)}
        partitions = min(self._partitions, CALLING_PARTITIONS)
        return new(self._settings, partitions, self._pools.main, measured=False, special=special)

    @cached_property
    def sorting(self) -> SessionContext:
        """The context that runs plans of tasks as `main` does, and sorts each partition by itself.

        That is wrong for some unions: see `PlanRun`.
        """
        special = {_SORTS: "true"}
        return new(self._settings, self._partitions, self._pools.main, self._measured, special)

    @cached_property
    def unspilled(self) -> SessionContext:
        """The context that runs plans with nested-loop joins; it has no tables.

        Such a join that spills reads its first side again, and loses rows; it returns unmatched
        rows not at all or several times. See docs/decisions/0156.
        """
        return new(self._settings, 1, self._pools.unspilled, self._measured, _ONE_AFTER_ANOTHER)

    def of_product(self, *, may_spill: bool) -> SessionContext:
        """Return the context that runs a product."""
        return self.serial if may_spill else self.unspilled

    @cached_property
    def changing(self) -> SessionContext:
        """The context that changes rows in memory; it has no tables, because plans bring theirs.

        DataFusion takes the conditions and new values of UPDATE and DELETE from the optimized plan.
        It does not find common parts, which the optimizer computes below them.
        """
        context = new(self._settings, self._partitions, self._pools.main, measured=False)
        context.remove_optimizer_rule("common_sub_expression_eliminate")
        return context

    def planned(self, running: PlanRun, *, is_narrow: bool = False) -> SessionContext:
        """Return the context that runs optimized plans, in one partition if it `is_narrow`."""
        if is_narrow:
            return self._pools.planned(1, self._measured, replace(running, sorts_apart=False))
        return self._pools.planned(self._partitions, self._measured, running)

    def explaining(self, running: PlanRun) -> SessionContext:
        """Create a context that runs plans as `planned` does, for one more table."""
        return self._pools.planned_once(self._partitions, self._measured, running)

    def scratch(self) -> SessionContext:
        """Create another context for planning only, without tables."""
        return without_statistics(self._partitions)


def place(name: TableName) -> tuple[str, str]:
    """Return the schema of a table, and its name in that schema.

    The name of a schema of another catalog begins with that of the catalog and a dot.
    """
    schema_name, _, bare = name.rpartition(".")
    return schema_name or PUBLIC, bare


def add_schema(context: SessionContext, name: str, schema: SchemaProvider) -> None:
    """Add a schema, and its catalog where it is the first one there."""
    catalog, dot, bare = name.rpartition(".")
    if dot and catalog not in context.catalog_names():
        context.register_catalog_provider(catalog, Catalog.memory_catalog())
    context.catalog(catalog or CATALOG).register_schema(bare, schema)


def schema_of(context: SessionContext, name: TableName) -> Schema:
    """Return the schema of a table that is registered."""
    catalog, _, bare = place(name)[0].rpartition(".")
    return context.catalog(catalog or CATALOG).schema(bare)


def quoted(table: TableName) -> str:
    """Return the quoted name of a table for SQL."""
    schema_name, bare = place(table)
    return ".".join(f'"{part}"' for part in (*schema_name.split("."), bare))


def _pool(settings: EngineSettings, share: float) -> Pool:
    runtime, size_bytes = RuntimeEnvBuilder(), int((settings.memory_limit_bytes or 0) * share)
    if size_bytes:
        runtime = runtime.with_fair_spill_pool(size_bytes)
    if settings.temp_directory:
        runtime = runtime.with_temp_file_path(spilling.folder(settings.temp_directory))
    return Pool(runtime, size_bytes)


def new(
    settings: EngineSettings,
    partitions: int,
    pool: Pool,
    measured: bool,
    special: Mapping[str, str] = MappingProxyType({}),
) -> SessionContext:
    """Create a context with the engine's settings and workarounds, and some special settings."""
    config = (
        SessionConfig()
        .with_default_catalog_and_schema(CATALOG, "public")
        .with_information_schema(True)
        .with_target_partitions(partitions)
        .set("datafusion.execution.listing_table_ignore_subdirectory", "false")
        .set("datafusion.execution.spill_compression", settings.spill_compression)
        # An INSERT into a folder is one file, which appears as a whole.
        .set("datafusion.execution.minimum_parallel_output_files", "1")
        .set("datafusion.execution.soft_max_rows_per_output_file", str(2**63 - 1))
        .set("datafusion.execution.collect_statistics", str(measured).lower())
        .set("datafusion.execution.perfect_hash_join_small_build_threshold", str(_key_range(pool)))
        # It forgets a column that has no bound yet: wrong minima. apache/datafusion#25147
        .set("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", "false")
        # It takes the order of a computed key for the order of its input: wrong rows.
        .set("datafusion.optimizer.enable_topk_aggregation", "false")
        # Partitions of a union with constants in a column sort without it, and with a LIMIT leave
        # out rows that others have by the rest of the key: wrong rows. apache/datafusion#23528
        .set(_SORTS, "false")
        # A new sort of groups takes the LIMIT before they are whole: rows are missing.
        # apache/datafusion#24927
        .set("datafusion.optimizer.prefer_existing_sort", "true")
        # Over a window, DISTINCT with a LIMIT fails. apache/datafusion#25350
        .set(_ENDS, "false")
        # It refuses values that are never NULL, such as those of IS TRUE, where the physical plan
        # cannot tell. apache/datafusion#24096, apache/datafusion#25369
        .set("datafusion.execution.skip_physical_aggregate_schema_check", "true")
        # A rule that fails leaves the plan as it was, which is right, if slower.
        .set("datafusion.optimizer.skip_failed_rules", "true")
    )
    for name, value in special.items():
        config = config.set(name, value)
    if pool.size_bytes:
        # Each sort of a statement reserves this much for merging, whatever the pool size.
        reserved = min(_MOST_RESERVED_BYTES, pool.size_bytes // 16)
        config = config.set("datafusion.execution.sort_spill_reservation_bytes", str(reserved))
    context = SessionContext(config, pool.runtime)
    # By default a directory listing is cached forever, so new files would never be seen.
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    functions.register(context)
    embedding.register(context, None)
    _register_version(context)
    return context


def _key_range(pool: Pool) -> int:
    if not pool.size_bytes:
        return _KEY_RANGE
    return min(_KEY_RANGE, max(_LEAST_KEY_RANGE, pool.size_bytes // (4 * _KEYS_SHARE)))


def without_statistics(partitions: int) -> SessionContext:
    """Create a context that plans without table statistics."""
    return new(EngineSettings(partitions), partitions, Pool(RuntimeEnvBuilder()), measured=False)


_LIKE = "PostgreSQL 16.0"
"""Clients of PostgreSQL read the number after this word, and choose what they send by it."""


def _register_version(context: SessionContext) -> None:
    """Put the function in place of the engine's own."""
    context.register_udf(_version())


@functools.cache
def _version() -> object:
    engine, own = metadata.version("datafusion"), metadata.version("caraway")
    text = pa.array([f"{_LIKE} (Caraway {own}, DataFusion {engine})"])
    # It has no arguments, so the optimizer computes it, for one row.
    return udf(lambda: text, [], pa.string(), "immutable", "version")

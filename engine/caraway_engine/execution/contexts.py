"""The engine's contexts, as a session needs them."""

from collections.abc import Iterator
from dataclasses import dataclass

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from caraway_core.ids import TableName
from caraway_engine.execution import spilling
from caraway_engine.execution.settings import EngineSettings

CATALOG = "caraway"
PUBLIC = "public"
_MOST_RESERVED_BYTES = 10 * 1024 * 1024
_PRODUCTS_SHARE = 0.25
"""Of the memory limit: products have a pool of their own, so that they starve nothing else."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What makes contexts that share memory; 0 bytes are no limit."""

    runtime: RuntimeEnvBuilder
    size_bytes: int = 0


class Pools:
    """Memory of statements, which sessions share: each may be kept by statements for long.

    Contexts made with one `RuntimeEnvBuilder` have one memory pool.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self.main = _pool(settings, 1 - _PRODUCTS_SHARE)
        self.serial = _pool(settings, _PRODUCTS_SHARE)


class Contexts:
    """The contexts of one session, in each of which are the same tables."""

    def __init__(
        self, settings: EngineSettings, *, measured: bool, pools: Pools | None = None
    ) -> None:
        pools = pools or Pools(settings)
        self._partitions = settings.target_partitions
        self.main = new(settings, settings.target_partitions, pools.main, measured)
        # Products run in one partition: DataFusion does not stop them at once, and each partition
        # of one that nobody wants any more holds a worker thread. See docs/decisions/0002.
        self.serial = new(settings, 1, pools.serial, measured)
        # These only plan: in them no statistics of whole files get into the plan of a share.
        self.unmeasured = {
            self.main: without_statistics(settings.target_partitions),
            self.serial: without_statistics(1),
        }

    def __iter__(self) -> Iterator[SessionContext]:
        return iter((self.main, self.serial, *self.unmeasured.values()))

    def scratch(self) -> SessionContext:
        """Make another that only plans, with no tables yet."""
        return without_statistics(self._partitions)


def place(name: TableName) -> tuple[str, str]:
    """Return the schema of a table, and its name there."""
    schema_name, _, bare = name.rpartition(".")
    return schema_name or PUBLIC, bare


def quoted(table: TableName) -> str:
    """Word the name of a table for SQL."""
    schema_name, _, bare = table.rpartition(".")
    return f'"{schema_name or "public"}"."{bare}"'


def _pool(settings: EngineSettings, share: float) -> Pool:
    runtime, size_bytes = RuntimeEnvBuilder(), int((settings.memory_limit_bytes or 0) * share)
    if size_bytes:
        runtime = runtime.with_fair_spill_pool(size_bytes)
    if settings.temp_directory:
        runtime = runtime.with_temp_file_path(spilling.folder(settings.temp_directory))
    return Pool(runtime, size_bytes)


def new(settings: EngineSettings, partitions: int, pool: Pool, measured: bool) -> SessionContext:
    config = (
        SessionConfig()
        .with_default_catalog_and_schema(CATALOG, "public")
        .with_information_schema(True)
        .with_target_partitions(partitions)
        .set("datafusion.execution.listing_table_ignore_subdirectory", "false")
        .set("datafusion.execution.spill_compression", settings.spill_compression)
        .set("datafusion.execution.collect_statistics", str(measured).lower())
        # It forgets a column that has no bound yet: wrong minima. apache/datafusion#25147
        .set("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", "false")
        # It takes the order of a computed key for that of what it is computed from: wrong rows.
        .set("datafusion.optimizer.enable_topk_aggregation", "false")
    )
    if partitions == 1:
        # It would sort the partitions that a table has anyway each by itself, and merge them.
        config = config.set("datafusion.optimizer.repartition_sorts", "false")
    if pool.size_bytes:
        # Each sort of a statement sets so much aside to merge with, whatever there is in all.
        reserved = min(_MOST_RESERVED_BYTES, pool.size_bytes // 16)
        config = config.set("datafusion.execution.sort_spill_reservation_bytes", str(reserved))
    context = SessionContext(config, pool.runtime)
    # The default keeps a folder's listing for ever, so new files would never be seen.
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    return context


def without_statistics(partitions: int) -> SessionContext:
    return new(EngineSettings(partitions), partitions, Pool(RuntimeEnvBuilder()), measured=False)

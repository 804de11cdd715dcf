"""The engine's contexts, as a session needs them."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

CATALOG = "caraway"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Bounds of one process's engine. `memory_limit_bytes` None means no limit."""

    target_partitions: int
    memory_limit_bytes: int | None = None
    temp_directory: Path | None = None
    spill_compression: str = "zstd"
    chunks_directory: Path | None = None
    """Takes copies of stored chunks that lie elsewhere."""


def new(settings: EngineSettings, partitions: int, share: float, measured: bool) -> SessionContext:
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
    runtime = RuntimeEnvBuilder()
    if settings.memory_limit_bytes:
        runtime = runtime.with_fair_spill_pool(int(settings.memory_limit_bytes * share))
    if settings.temp_directory:
        with contextlib.suppress(FileExistsError):
            settings.temp_directory.mkdir(parents=True)
        runtime = runtime.with_temp_file_path(settings.temp_directory)
    context = SessionContext(config, runtime)
    # The default keeps a folder's listing for ever, so new files would never be seen.
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    return context


def without_statistics(partitions: int) -> SessionContext:
    return new(EngineSettings(partitions), partitions, 1, measured=False)

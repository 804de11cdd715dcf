"""Bounds of an engine, as a process is given them; importing this loads no engine."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Bounds of one process's engine. `memory_limit_bytes` None means no limit."""

    target_partitions: int
    memory_limit_bytes: int | None = None
    temp_directory: Path | None = None
    spill_compression: str = "zstd"
    chunks_directory: Path | None = None
    """Takes copies of stored chunks that lie elsewhere."""

"""The settings of a process's engine. Importing this module loads no engine."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Limits of a process's engine. None means no limit of the memory or the planning time."""

    target_partitions: int
    memory_limit_bytes: int | None = None
    temp_directory: Path | None = None
    spill_compression: str = "zstd"
    chunks_directory: Path | None = None
    """The directory for copies of chunks that are stored elsewhere."""
    planning_timeout_s: float | None = 10.0
    """The processor time that the planning of a statement may take in an engine process."""

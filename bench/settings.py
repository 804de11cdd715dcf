"""What the suites of the cluster may be told on the command line."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Smaller scales and fewer runs are for those who work on the benchmark itself."""

    scale: str = "1"
    large_scale: str = "10"
    scan_scale: str = "4"
    """Of what accelerated scans are measured over, too."""
    runs: int = 4
    limit_s: float = 120.0
    rivals: tuple[str, ...] = ("plain", "daft", "spark")

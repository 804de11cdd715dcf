"""Settings of the cluster suites."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Command line settings. Smaller scales and fewer runs are for work on the benchmark itself."""

    scale: str = "1"
    large_scale: str = "10"
    scan_scale: str = "4"
    """The second scale of the accelerated scans."""
    runs: int = 4
    limit_s: float = 120.0
    rivals: tuple[str, ...] = ("plain", "daft", "spark")

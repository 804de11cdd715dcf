"""The files that DuckDB keeps beside a database."""

LOG = ".wal"
LOGS = (LOG, ".wal.checkpoint", ".wal.recovery")


def beside(path: str, suffix: str) -> str:
    """Return the path of such a file; DuckDB puts a suffix before a `?`, as in a URL."""
    before, mark, after = path.partition("?")
    return f"{before}{suffix}{mark}{after}"

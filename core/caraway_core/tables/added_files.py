"""Whether the engine can add a file to the files of a table."""

from collections.abc import Sequence

from caraway_core.tables.files import FileScan

_WRITTEN = {"parquet": ".parquet", "csv": ".csv", "json": ".json", "arrow": ".arrow"}
"""The endings of files that the engine writes, by their format."""


def _is_folder(scans: Sequence[FileScan]) -> bool:
    """Return whether the engine can add a file to a folder that is read."""
    return len(scans) == 1 and [path[-1:] for path in scans[0].paths] == ["/"]


def why_none(scans: Sequence[FileScan]) -> str:
    """Return why the engine adds no file to what is read; empty: it does."""
    if not _is_folder(scans):
        return "its rows are in files that are only read"
    (scan,) = scans
    written = _WRITTEN.get(scan.format)
    if written is None:
        return f"no files of {scan.format} are written"
    if not written.endswith(scan.extension):
        return f"its files end with '{scan.extension}', and files are written as '{written}'"
    return ""

"""Tasks of scans, as the REST protocol has them."""

from typing import Any

from caraway_plugins.iceberg.manifests import DataFile


def task(file: DataFile) -> dict[str, object]:
    """Return the task to read a file of a table."""
    partition = list(file.partition.values())
    return written(file.location, file.size_bytes, file.statistics.row_count, partition)


def written(
    location: str, size_bytes: int, row_count: int, partition: list[object] | None = None
) -> dict[str, Any]:
    """Return the task to read a file."""
    data_file = {
        "content": "data",
        "file-path": location,
        "file-format": "parquet",
        "spec-id": 0,
        "partition": partition or [],
        "file-size-in-bytes": size_bytes,
        "record-count": row_count,
    }
    return {"data-file": data_file}

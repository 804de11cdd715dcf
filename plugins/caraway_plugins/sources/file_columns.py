"""Columns about the file of each row: `_location`, `_last_modified` and `_size`.

They are read as the values of `key=value` folders are, so filters on them leave files out.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.partitions import Values
from caraway_plugins.sources.shapes import FileShape
from caraway_plugins.sources.storage import FoundFile, Storage

MOST_FILES = 1_000
"""Each file is a scan of its own in the plan of a statement."""
FIELDS = (
    pa.field("_location", pa.string()),
    pa.field("_last_modified", pa.timestamp("us", "UTC")),
    pa.field("_size", pa.int64()),
)


def are_wanted(params: Params) -> bool:
    """Return whether a dataset has the columns."""
    return params.flag("metadata_columns", False)


def values(storage: Storage, found: FoundFile) -> Values:
    """Return the values of a file as texts."""
    modified = datetime.fromtimestamp(found.modified_s, UTC)
    return (
        ("_location", storage.title(found.path)),
        ("_last_modified", modified.isoformat()),
        ("_size", str(found.size_bytes)),
    )


def added(storage: Storage, files: Sequence[FileShape]) -> list[FileShape]:
    """Return the files with the values of the columns.

    Raises:
        DatasetError: there are too many files.
    """
    if len(files) > MOST_FILES:
        raise DatasetError(
            "unsupported",
            f"metadata_columns are for {MOST_FILES} files at most, and there are {len(files)}; "
            "leave it out, or divide the files among datasets",
        )
    return [
        replace(each, partition=(*each.partition, *values(storage, each.found))) for each in files
    ]

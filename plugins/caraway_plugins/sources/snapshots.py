"""Snapshots that another runtime writes, as files: `file_format: snapshot`.

The name of the dataset selects the snapshots, which are those of a dataset of this name there.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols import snapshots
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.snapshots import FoundSnapshot
from caraway_plugins.sources.listing import FileListing
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile, Storage
from caraway_plugins.stores import checksums, chunks

FORMAT = "snapshot"
_MOST_DESCRIPTION = 64 * 1024 * 1024


def is_wanted(params: Params) -> bool:
    """Return whether the params ask for snapshots."""
    return (params.text("file_format") or "").lower() == FORMAT


def as_files(params: Params) -> Params:
    """Return the params for reading the files of a snapshot."""
    return replace(params, values={**params.values, "file_format": "arrow"})


def look(storage: Storage, path: str, name: TableName) -> FileListing:
    """List the files of the current snapshot of a dataset.

    Raises:
        DatasetError: there is no snapshot, it is damaged, or access is denied.
    """
    root = path if path.endswith("/") or not path else f"{path}/"
    files = {each.path.removeprefix(root): each for each in storage.listing(root)}
    keys = {relative.partition("/")[0] for relative in files}
    snapshot = snapshots.listing(snapshots.prefix_of(name), keys).current
    title = storage.title(path)
    if snapshot is None:
        raise DatasetError("not_found", f"'{title}' has no snapshot of a dataset '{name}'")
    damaged = DatasetError(
        "invalid",
        f"the snapshot {snapshot.number} of '{name}' in '{title}' is damaged or incomplete",
    )
    try:
        described = files[f"{snapshot.description}/{chunks.file_name(0, snapshot.chunk.checksum)}"]
        columns, names = _described(_description(storage, described, snapshot))
        rows = tuple(files[each] for each in names)
    except (CarawayError, KeyError, ValueError, TypeError, OSError, pa.ArrowException) as exc:
        raise damaged from exc
    return FileListing(root, rows, (), is_folder=False, columns=columns)


def _description(
    storage: Storage, file: FoundFile, snapshot: FoundSnapshot
) -> Mapping[str, object]:
    if file.size_bytes > _MOST_DESCRIPTION:
        raise ValueError("the description is too large")
    content = storage.read(file.path, 0, file.size_bytes)
    if not checksums.match(content, snapshot.chunk.checksum):
        raise ValueError("the description has other bytes than its mark says")
    rows = pa.ipc.open_stream(content).read_all()
    document: Mapping[str, Any] = json.loads(rows.column(0)[0].as_py())
    return document


def _described(document: Mapping[str, Any]) -> tuple[pa.Schema, list[str]]:
    """Return the columns and the files of the rows, below the place of the snapshots."""
    part, key = json.loads(document["part"]), document["key"]
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(part["schema"])))
    chunk_infos = [ChunkInfo(*each) for each in part["chunks"]]
    return columns, [
        f"{each.key or key}/{chunks.file_name(each.index, each.checksum)}" for each in chunk_infos
    ]

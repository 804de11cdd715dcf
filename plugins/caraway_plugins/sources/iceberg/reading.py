"""Opens the Parquet files of a table, and reads which rows other files delete."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins.iceberg import deletion_vectors, read_schemas
from caraway_plugins.iceberg.column_types import IcebergField
from caraway_plugins.sources import storage
from caraway_plugins.sources.buckets import BucketStorage
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.iceberg import columns, deletes
from caraway_plugins.sources.iceberg.columns import OwnField
from caraway_plugins.sources.iceberg.data_files import Constants, DeleteFile, VectorPlace
from caraway_plugins.sources.iceberg.deletes import DeletedValues
from caraway_plugins.sources.storage import FoundFile

K = TypeVar("K")
V = TypeVar("V")
_TIMEOUT_S = 30.0
_BATCH_ROWS = 64 * 1024
_KEPT = 16
Columns = dict[int, pa.Array]
"""Columns of the table, by id."""


class FileReader:
    """Reads the files of one scan. What several data files need is read once.

    Its methods raise DatasetError, OSError or pa.ArrowException for files that are gone or damaged.
    """

    def __init__(self, fields: Sequence[IcebergField]) -> None:
        self._fields = {each.id: each for each in fields}
        self._positions: OrderedDict[str, pa.Table] = OrderedDict()
        self._values: OrderedDict[tuple[str, ...], DeletedValues] = OrderedDict()

    def batches(
        self,
        file: pq.ParquetFile,
        own: Sequence[OwnField],
        constants: Constants,
        ids: Sequence[int],
    ) -> Iterator[tuple[int, Columns]]:
        """Yield the number of rows of each batch, and columns of the table."""
        by_id = {each.id: each for each in own if each.id is not None}
        names = [by_id[id_].name for id_ in ids if id_ in by_id]
        for batch in file.iter_batches(_BATCH_ROWS, columns=names):
            count = batch.num_rows
            found = {each.id: self._column(batch, each) for each in own if each.name in names}
            for id_ in ids:
                if id_ not in by_id:
                    found[id_] = self._constant(id_, dict(constants).get(id_), count)
            yield count, {id_: found[id_] for id_ in ids}

    def positions(self, file: DeleteFile, location: str) -> np.ndarray:
        """Return the positions of the rows of a data file that a file deletes."""
        if file.vector is not None:
            return _read_vector(file, file.vector)
        if (found := self._positions.get(file.path)) is None:
            found = _keep(self._positions, file.path, _read_positions(file))
        return deletes.positions(found, location)

    def values(self, files: Sequence[DeleteFile]) -> DeletedValues:
        """Return the values of deleted rows, from files that compare the same columns."""
        key = tuple(each.path for each in files)
        if (deleted_values := self._values.get(key)) is None:
            deleted_values = _keep(self._values, key, self._read_values(files))
        return deleted_values

    def _read_values(self, files: Sequence[DeleteFile]) -> DeletedValues:
        ids = files[0].ids
        parts: list[Columns] = []
        for each in files:
            with opened(each.path, each.size_bytes, each.store) as file:
                own = columns.read(file.schema_arrow, None)
                parts += [part for _, part in self.batches(file, own, (), ids)]
        types = {id_: read_schemas.arrow_type(self._fields[id_].type) for id_ in ids}
        return DeletedValues(
            {id_: pa.chunked_array([each[id_] for each in parts], types[id_]) for id_ in ids}
        )

    def _column(self, batch: pa.RecordBatch, own: OwnField) -> pa.Array:
        assert own.id is not None
        values = batch.column(batch.schema.names.index(own.name))
        return columns.projected(values, own, self._fields[own.id].type)

    def _constant(self, id_: int, value: object, count: int) -> pa.Array:
        type_ = read_schemas.arrow_type(self._fields[id_].type)
        return (
            pa.nulls(count, type_) if value is None else pa.repeat(pa.scalar(value, type_), count)
        )


@contextmanager
def opened(path: str, size_bytes: int, store: StoreSpec | None) -> Iterator[pq.ParquetFile]:
    """Open a file."""
    if store is None:
        with pq.ParquetFile(path) as file:
            yield file
        return
    with storage.opened(
        BucketStorage(store, _TIMEOUT_S), FoundFile(path, size_bytes, "")
    ) as stream:
        yield pq.ParquetFile(pa.PythonFile(stream, mode="r"))


def _read_positions(file: DeleteFile) -> pa.Table:
    with opened(file.path, file.size_bytes, file.store) as parquet_file:
        return parquet_file.read(columns=list(deletes.COLUMNS))


def _read_vector(file: DeleteFile, vector: VectorPlace) -> np.ndarray:
    place = Disk() if file.store is None else BucketStorage(file.store, _TIMEOUT_S)
    blob = place.read(file.path, vector.start, vector.start + vector.size_bytes)
    try:
        return deletion_vectors.positions(blob, vector.count)
    except ValueError as exc:
        name = file.path.rpartition("/")[2]
        raise DatasetError("invalid", f"the deletion vector in '{name}' is damaged: {exc}") from exc


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> V:
    kept[key] = value
    if len(kept) > _KEPT:
        kept.popitem(last=False)
    return value

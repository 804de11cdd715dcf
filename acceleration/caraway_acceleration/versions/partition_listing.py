"""The table `runtime.partitions`: the placement of accelerated datasets on executors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa

from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.tables import StoredTable
from caraway_engine.sharing import dealing

SCHEMA = pa.schema(
    [
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("executors", pa.list_(pa.string()), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)


def table(
    read: Iterable[tuple[TableName, DatasetVersion, StoredTable]],
    executors: Sequence[ExecutorStatus],
) -> pa.Table:
    """List each partition of the current versions with the executors that hold it.

    Queries read from the first of them. Row counts are those of the base, because changes are not
    counted by partition.
    """
    ready = [each.executor_id for each in executors if each.is_ready]
    rows = [row for each in read for row in _rows(*each, ready)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _rows(
    name: TableName, version: DatasetVersion, spec: StoredTable, ready: Sequence[ExecutorId]
) -> Iterable[dict[str, object]]:
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for chunk in spec.chunks:
        size = sizes[chunk.partition if spec.cut.terms else chunk.checksum]
        size[0] += chunk.row_count
        size[1] += chunk.size_bytes
    for partition, owners in dealing.holders(spec, ready, spec.replicas).items():
        row_count, size_bytes = sizes[partition]
        yield {
            "dataset": name,
            "partition": partition,
            "executors": list(owners),
            "rows": row_count,
            "size_bytes": size_bytes,
            "version": version.number,
        }

"""Clusters over an Iceberg table `ice` and a Delta table `del`, in folders that executors share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import deltalake
import pyarrow as pa
import yaml

from tests.kit import iceberg_tables
from tests.kit.fault_clusters import Served
from tests.kit.ray_cluster import RayCluster, ray_cluster

ICE: Mapping[str, object] = {
    "from": "iceberg:sqlite://n/t",
    "params": {"sqlite_file": "catalog.db"},
    "access": "read_write",
}
"""The place of the Iceberg table, as datasets of a manifest name it."""


@contextmanager
def lake_cluster(
    folder: Path,
    rows: pa.Table,
    executors: int,
    *others: Mapping[str, object],
    memory: str = "512MiB",
) -> Iterator[tuple[RayCluster, Served]]:
    """Start a cluster over two tables with these rows, and over other datasets."""
    iceberg_tables.create(folder, rows)
    deltalake.write_deltalake(folder / "d", rows)
    document = {
        "version": "v1",
        "kind": "Caraway",
        "name": "lakes",
        "runtime": {"scheduler": {"state_location": "results"}},
        "datasets": [
            {**ICE, "name": "ice"},
            {"from": "delta:d", "name": "del", "access": "read_write"},
            *others,
        ],
    }
    manifest = folder / "caraway.yaml"
    manifest.write_text(yaml.safe_dump(document))
    with ray_cluster(folder, executors, memory=memory) as of:
        process = of.begin_scheduler("s1", manifest).wait_up()
        yield of, Served(f"http://{process.facts['http']}")

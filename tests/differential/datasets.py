"""Writes tables as several Parquet files, with a catalog snapshot and a manifest for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.statements import CatalogSnapshot
from caraway_core.tables import TableSpec, ViewTable
from caraway_plugins.sources.files import LocalFiles

SEVERAL = (0.5, 0.0, 0.05, 0.3, 0.15)
"""The distribution of a table's rows over its files: uneven, with one empty file."""
SINGLE = (1.0,)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder with one folder of Parquet files per table, and views over them."""

    name: str
    folder: Path
    views: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> list[str]:
        return sorted(each.name for each in self.folder.iterdir() if each.is_dir())

    def snapshot(self) -> CatalogSnapshot:
        """Return all tables and views, as the sources of a manifest would."""
        specs: dict[TableName, TableSpec] = {
            TableName(name): LocalFiles().resolve(self._request(name)) for name in self.tables
        }
        views = {TableName(name): ViewTable(sql) for name, sql in self.views.items()}
        return CatalogSnapshot(CatalogVersion(1), specs | views, {})

    def manifest(self) -> Path:
        """Write a manifest that serves the same tables and views."""
        path = self.folder / "caraway.yaml"
        content = {
            "version": "v1",
            "kind": "Caraway",
            "name": self.name,
            "datasets": [{"from": f"file:{self.folder / t}/", "name": t} for t in self.tables],
            "views": [{"name": name, "sql": sql} for name, sql in self.views.items()],
        }
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def _request(self, name: str) -> SourceRequest:
        path = f"{self.folder / name}/"
        return SourceRequest(
            TableName(name), "file", path, {}, (), "read", self.folder, self.folder
        )


def write(
    folder: Path, table: pa.Table, spread: tuple[float, ...] = SEVERAL, group_rows: int = 1 << 20
) -> None:
    """Write the rows, in order, into one file per part of the spread."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(_parts(table, spread)):
        pq.write_table(rows, folder / f"part-{number}.parquet", row_group_size=group_rows)


def _parts(table: pa.Table, spread: tuple[float, ...]) -> Iterator[pa.Table]:
    start, sum_ = 0, 0.0
    for share in spread:
        sum_ += share
        end = round(table.num_rows * sum_)
        yield table.slice(start, end - start)
        start = end

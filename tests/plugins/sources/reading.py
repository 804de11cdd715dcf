"""Resolves a source as the catalog does, and reads its table as an executor does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import FilesTable, TableSpec
from caraway_engine.scans import object_stores, tables


@dataclass(frozen=True, slots=True)
class Dataset:
    """A short form of a dataset in a manifest."""

    connector: str
    path: str
    base_dir: Path
    params: Mapping[str, str]
    declared: Sequence[pa.Field] = ()

    def request(self) -> SourceRequest:
        return SourceRequest(
            name=TableName("t"),
            connector=self.connector,
            path=self.path,
            params=self.params,
            declared=tuple(self.declared),
            access="read",
            base_dir=self.base_dir,
            cache_dir=self.base_dir / ".cache",
        )

    def source(self) -> Source:
        source: Source = registry.SOURCES.load(self.connector)()
        return source

    def resolve(self) -> TableSpec:
        return self.source().resolve(self.request())

    def files(self) -> FilesTable:
        spec = self.resolve()
        assert isinstance(spec, FilesTable)
        return spec

    def fingerprint(self) -> str | None:
        return self.source().fingerprint(self.request())

    def rows(self, sql: str = "SELECT * FROM t ORDER BY 1") -> list[dict[str, Any]]:
        return query(self.resolve(), sql)


def context(spec: TableSpec) -> SessionContext:
    """Create an engine context with the table in it, as an executor does."""
    made = SessionContext(
        SessionConfig()
        .with_target_partitions(2)
        .set("datafusion.execution.listing_table_ignore_subdirectory", "false")
    )
    made.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
    if isinstance(spec, FilesTable):
        object_stores.register(made, spec)
    made.register_table("t", tables.build_table(spec))
    return made


def query(spec: TableSpec, sql: str = "SELECT * FROM t ORDER BY 1") -> list[Any]:
    rows: list[Any] = context(spec).sql(sql).to_arrow_table().to_pylist()
    return rows

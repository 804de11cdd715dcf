"""Generates TPC-H data once, with the package tpchgen-cli."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
_ROOT = Path(__file__).parent / "data"


def tpch(scale: str = "1") -> Path:
    """Return a folder with one Parquet file per table."""
    folder = _ROOT / f"tpch-{scale}"
    if not (folder / "lineitem.parquet").exists():
        subprocess.run(
            [*_generator(), "parquet", "-s", scale, f"--output-dir={folder}"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return folder


def _generator() -> list[str]:
    """Return the command that makes the data; tpcgen-cli is the same program with TPC-DS."""
    programs = Path(sys.executable).parent
    if (programs / "tpchgen-cli").exists():
        return [str(programs / "tpchgen-cli")]
    return [str(programs / "tpcgen-cli"), "tpch"]


def plain_strings(folder: Path) -> Path:
    """Return a folder with the same tables and row groups, but without string views."""
    copy = folder.with_name(f"{folder.name}-plain")
    for table in TABLES:
        file = copy / f"{table}.parquet"
        if not file.exists():
            copy.mkdir(exist_ok=True)
            _copy(folder / file.name, file)
    return copy


def _copy(source: Path, target: Path) -> None:
    draft = target.with_suffix(".draft")
    with pq.ParquetFile(source) as file:
        schema = pa.schema(
            (each.name, pa.string() if each.type == pa.string_view() else each.type, each.nullable)
            for each in file.schema_arrow
        )
        with pq.ParquetWriter(draft, schema, compression="snappy") as writer:
            for number in range(file.metadata.num_row_groups):
                rows = file.read_row_group(number).cast(schema)
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    draft.rename(target)


def manifest(folder: Path, *, is_accelerated: bool = False) -> Path:
    """Write a manifest that serves every table of the folder."""
    lines = ["version: v1", "kind: Caraway", "name: tpch", "datasets:"]
    for table in TABLES:
        lines += [f"  - from: file:{folder / table}.parquet", f"    name: {table}"]
        lines += ["    acceleration: {enabled: true}"] * is_accelerated
    path = folder / ("accelerated.yaml" if is_accelerated else "caraway.yaml")
    path.write_text("\n".join(lines) + "\n")
    return path

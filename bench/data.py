"""Makes TPC-H data once, with the package tpchgen-cli."""

import subprocess
import sys
from pathlib import Path

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
_ROOT = Path(__file__).parent / "data"


def tpch(scale: str = "1") -> Path:
    """Return a folder with one Parquet file a table."""
    folder = _ROOT / f"tpch-{scale}"
    if not (folder / "lineitem.parquet").exists():
        command = Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run(
            [str(command), "parquet", "-s", scale, f"--output-dir={folder}"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return folder


def manifest(folder: Path) -> Path:
    """Write a manifest that serves every table of the folder."""
    lines = ["version: v1", "kind: Caraway", "name: tpch", "datasets:"]
    for table in TABLES:
        lines += [f"  - from: file:{folder / table}.parquet", f"    name: {table}"]
    path = folder / "caraway.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path

"""TPC-H and TPC-DS: query texts, and data in several files per table, made without a network."""

import re
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential import datasets
from tests.differential.comparing import Order
from tests.differential.datasets import SEVERAL, SINGLE, Dataset

_SMALL_ROWS = 30
_GROUP_ROWS = 20_000
_TPCH_TEXTS = Path(__file__).parents[2] / "bench" / "queries"
_TPCDS_LIMIT = re.compile(r"\s*LIMIT\s+\d+\s*$", re.IGNORECASE)


def tpch(folder: Path, scale: str) -> Dataset:
    return _made("tpch", folder, scale)


def tpcds(folder: Path, scale: str) -> Dataset:
    return _made("tpcds", folder, scale)


def tpch_texts() -> dict[str, str]:
    """Return the 22 queries by name, `q01` to `q22`."""
    return {path.stem: path.read_text() for path in sorted(_TPCH_TEXTS.glob("q*.sql"))}


def tpcds_texts() -> dict[str, str]:
    """Return the 99 queries by name, `q01` to `q99`."""
    package = resources.files("duckdb_extension_tpcds")
    extension = package / "extensions" / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        found = connection.sql("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {f"q{number:02}": text.strip().removesuffix(";") for number, text in found}


def without_limit(sql: str) -> str:
    """Return the statement without its final LIMIT."""
    return _TPCDS_LIMIT.sub("", sql.strip().removesuffix(";"))


def order(sql: str, answer: pa.Table, whole: pa.Table) -> Order:
    """Return the order of the rows: by the leading sort keys that the answer contains."""
    places: list[int] = []
    names = [name.lower() for name in answer.schema.names]
    for key in _sort_keys(without_limit(sql)):
        if key.isdigit():
            places.append(int(key) - 1)
        elif names.count(key) == 1:
            places.append(names.index(key))
        else:
            break
    kept = whole if whole.num_rows > answer.num_rows else None
    return Order("keys", tuple(places), kept) if places else Order(whole=kept)


def _sort_keys(sql: str) -> list[str]:
    start = sql.lower().rfind("order by")
    tail = sql[start + len("order by") :] if start >= 0 else ""
    if tail.count("(") != tail.count(")"):
        return []  # it sorts a window or a subquery, not the statement
    keys = re.split(r",(?![^()]*\))", tail)
    ending = re.compile(r"\s+(asc|desc|nulls\s+(first|last))\b.*", re.IGNORECASE | re.DOTALL)
    return [ending.sub("", key.strip()).split(".")[-1].strip().lower() for key in keys]


def _made(benchmark: str, folder: Path, scale: str) -> Dataset:
    """Make the data unless it exists; an existing folder is complete."""
    target = folder / f"{benchmark}-{scale}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            generated, spread = Path(scratch) / "generated", Path(scratch) / "spread"
            _generate(benchmark, scale, generated)
            for path in generated.glob("*.parquet"):
                table = pq.read_table(path)
                files = SINGLE if table.num_rows < _SMALL_ROWS else SEVERAL
                datasets.write(spread / path.stem, table, files, _GROUP_ROWS)
            try:
                spread.rename(target)
            except OSError:
                # Another worker was faster, and has made the same.
                if not target.exists():
                    raise
    return Dataset(benchmark, target)


def _generate(benchmark: str, scale: str, folder: Path) -> None:
    command = Path(sys.executable).parent / "tpcgen-cli"
    subprocess.run(
        [str(command), benchmark, "parquet", "-s", scale, f"--output-dir={folder}"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=280,
    )  # fmt: skip

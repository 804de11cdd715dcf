"""Manifests of others are kept: read only where that is needed, and counted where no list did."""

import io
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.compute as pc
import pytest

from caraway_core.errors import ExecutionError
from tests.kit import iceberg_tables
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import (
    UPGRADE,
    Written,
    of_version,
    rewrite,
    small,
)

COUNTS = [f"{each}_{what}_count" for each in ("added", "existing", "deleted")
          for what in ("files", "rows")]  # fmt: skip
SECOND: dict[str, Any] = {"format-version": 2, "last-sequence-number": 0}


def without_counts(folder: Path) -> None:
    """Have the newest manifest list be one of a writer that does not count."""
    path = iceberg_tables.manifest_list(folder / "n" / "t")
    reader: Any = fastavro.reader(io.BytesIO(path.read_bytes()))
    records = list(reader)
    older = {each.replace("_files", "_data_files") for each in COUNTS}
    fields = [each for each in reader.writer_schema["fields"]
              if each["name"] not in {*COUNTS, *older}]  # fmt: skip
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    with path.open("wb") as out:
        fastavro.writer(out, schema, records)


@pytest.mark.parametrize("upgrade", [SECOND, UPGRADE | {"last-sequence-number": 0}], ids=str)
def test_a_list_of_the_first_version_is_counted_after_an_upgrade(
    tmp_path: Path, upgrade: dict[str, Any]
) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1, 2))
    placed, rows = written.placed()
    written.replace(placed, rows.slice(0, 1))
    written.insert(small(3, 4, 5))
    without_counts(tmp_path)
    rewrite(tmp_path, lambda document: {**document, **upgrade})
    assert written.insert(small(6)) == 1
    counted = [[each[name] for name in COUNTS] for each in written_tables.listed(written)]
    assert counted == [
        [1, 1, 0, 0, 0, 0],
        [1, 3, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 2],
    ]
    assert written.read() == written.own_rows() == small(2, 3, 4, 5, 6).to_pylist()
    placed, rows = written.placed()
    assert written.replace(placed, rows.filter(pc.equal(rows.column("id"), 4))) == 1
    assert written.read() == written.own_rows() == small(2, 3, 5, 6).to_pylist()


def paths(written: Written) -> list[Path]:
    listed = written_tables.listed(written)
    return [iceberg_tables.local(each["manifest_path"]) for each in listed]


@pytest.mark.parametrize("version", [1, 3])
def test_only_manifests_of_files_that_are_replaced_are_read(tmp_path: Path, version: int) -> None:
    written = of_version(tmp_path, version)
    for number in range(1, 6):
        written.insert(small(number, 10 * number))
    placed, rows = written.placed()
    table = written.table
    others = {path: path.read_bytes() for path in [*paths(written)[:2], *paths(written)[3:]]}
    for path in others:
        path.unlink()
    gone = rows.filter(pc.equal(rows.column("id"), 3))
    assert written_tables.replace_rows(table, placed, gone) == 1
    for path, content in others.items():
        path.write_bytes(content)
    expected = small(1, 2, 4, 5, 10, 20, 30, 40, 50).to_pylist()
    assert written.read() == written.own_rows() == expected


def test_files_are_found_in_manifests_that_another_writer_merged(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1, 2))
    written.insert(small(3))
    placed, rows = written.placed()
    with written.catalog.load_table("n.t").transaction() as change:
        change.set_properties(
            {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
        )
    written.catalog.load_table("n.t").append(small(4))
    (_,) = written_tables.listed(written)
    assert written.replace(placed, rows.filter(pc.equal(rows.column("id"), 1))) == 1
    assert written.read() == written.own_rows() == small(2, 3, 4).to_pylist()


def test_a_file_that_no_manifest_has_is_an_error(tmp_path: Path) -> None:
    written = of_version(tmp_path, 1)
    written.insert(small(1, 2))
    placed, rows = written.placed()
    path = iceberg_tables.manifest_list(tmp_path / "n" / "t")
    reader: Any = fastavro.reader(io.BytesIO(path.read_bytes()))
    with path.open("wb") as out:
        fastavro.writer(out, reader.writer_schema, [])
    with pytest.raises(ExecutionError, match="its manifests lack files whose rows are changed"):
        written.replace(placed, rows.slice(0, 1))

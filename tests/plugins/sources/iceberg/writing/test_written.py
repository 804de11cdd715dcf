"""Tables have a writer where something commits their snapshots."""

from dataclasses import replace
from pathlib import Path

from caraway_core.tables import FilesTable
from caraway_plugins.sources.iceberg.scanning import WrittenIcebergTable
from tests.plugins.sources.iceberg.writing.written_tables import (
    ROWS,
    create,
)


def test_only_tables_of_catalogs_that_are_written_have_a_writer(tmp_path: Path) -> None:
    written = create(tmp_path)
    for other in (
        replace(written.request, access="read"),
        replace(written.request, path=str(tmp_path / "n" / "t")),
    ):
        spec = type(written)(other, written.catalog, "t").spec
        assert (spec.written, bool(spec.why_no_insert)) == (None, True)
        assert spec.why_unchangeable
    written.insert(ROWS)
    past = {**written.request.params, "iceberg_snapshot": str(written.snapshots()[0].snapshot_id)}
    spec = type(written)(replace(written.request, params=past), written.catalog, "t").spec
    assert spec.written is None
    spec = written.spec
    assert isinstance(spec, FilesTable)
    assert (spec.why_no_insert, spec.why_unchangeable) == ("", "")
    placed, rows = written.placed()
    written.replace(placed, rows.slice(0, 1))
    spec = written.spec
    assert isinstance(spec, WrittenIcebergTable)
    assert (spec.why_no_insert, spec.why_unchangeable) == ("", "")

"""Tables over Parquet are taken apart into files, as statements read them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import FilesTable
from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.files import LocalFiles


def table(path: str) -> FilesTable:
    here = Path("/")
    request = SourceRequest(TableName("t"), "file", path, {}, (), "read", here, here)
    found = LocalFiles().resolve(request)
    assert isinstance(found, FilesTable)
    return found


def write(path: Path, rows: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": list(range(rows))}), path)


def test_a_folder_is_listed_with_the_values_of_its_folders(tmp_path: Path) -> None:
    write(tmp_path / "y=2023" / "city=New%20York" / "a.parquet", 3)
    write(tmp_path / "y=2024" / "city=Bern" / "b.parquet")
    (tmp_path / "y=2024" / "_SUCCESS").write_text("")
    (tmp_path / "y=2024" / "notes.txt").write_text("")
    found = parquet_files.find(table(f"{tmp_path}/"))
    assert [each.values for each in found] == [("2023", "New York"), ("2024", "Bern")]
    assert found[0].location == f"file://{tmp_path}/y=2023/city=New%20York/a.parquet"
    rows = parquet_files.read_footers(found, lambda _file, footer: footer.num_rows)
    assert rows == [3, 1]


def test_files_of_several_scans_have_the_values_of_theirs(tmp_path: Path) -> None:
    write(tmp_path / "y=2023" / "a.parquet")
    write(tmp_path / "y=__HIVE_DEFAULT_PARTITION__" / "b.parquet")
    spec = table(f"{tmp_path}/")
    assert len(spec.scans) == 2
    found = {each.found.path[-9:]: each.values for each in parquet_files.find(spec)}
    assert found == {"a.parquet": ("2023",), "b.parquet": (None,)}


def test_the_fingerprint_changes_with_any_file(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    spec = table(f"{tmp_path}/")
    first = parquet_files.fingerprint(parquet_files.find(spec))
    assert parquet_files.fingerprint(parquet_files.find(spec)) == first
    write(tmp_path / "b.parquet")
    second = parquet_files.fingerprint(parquet_files.find(spec))
    (tmp_path / "b.parquet").unlink()
    write(tmp_path / "a.parquet", 9)
    assert len({first, second, parquet_files.fingerprint(parquet_files.find(spec))}) == 3


def test_files_that_are_gone_or_damaged_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    spec = table(f"{tmp_path}/a.parquet")
    found = parquet_files.find(spec)
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(DatasetError, match=r"a\.parquet' is damaged or is not a Parquet file"):
        parquet_files.read_footers(found, lambda _file, footer: footer.num_rows)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(DatasetError, match=r"a\.parquet' is gone"):
        parquet_files.read_footers(found, lambda _file, footer: footer.num_rows)
    with pytest.raises(DatasetError, match=r"a\.parquet' is gone"):
        parquet_files.find(spec)

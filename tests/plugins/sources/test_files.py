"""Every format as a file, a folder, a pattern and with partitions, and its errors."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from tests.kit.users import nobody
from tests.plugins.sources import reading, writing

ONE = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
TWO = [{"id": 3, "name": "c"}]
ALL = [*ONE, *TWO]
FORMATS = pytest.mark.parametrize("suffix", writing.FORMATS)

Put = Callable[[str, bytes | str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[..., reading.Dataset]:
    def make(path: str, declared: list[pa.Field] | None = None, **params: str) -> reading.Dataset:
        return reading.Dataset("file", path, tmp_path, params, declared or ())

    return make


Make = Callable[..., reading.Dataset]


def refused(dataset: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        dataset.resolve()
    return caught.value


@FORMATS
def test_one_file_is_read(suffix: str, put: Put, dataset: Make) -> None:
    put(f"x{suffix}", writing.FORMATS[suffix](ONE))
    assert dataset(f"x{suffix}").rows() == ONE


@FORMATS
def test_a_folder_is_read_with_its_folders_and_without_hidden_files(
    suffix: str, put: Put, dataset: Make
) -> None:
    put(f"d/1{suffix}", writing.FORMATS[suffix](ONE))
    put(f"d/deep/er/2{suffix}", writing.FORMATS[suffix](TWO))
    put(f"d/.hidden{suffix}", writing.FORMATS[suffix](TWO))
    put(f"d/_temporary/3{suffix}", writing.FORMATS[suffix](TWO))
    put("d/_SUCCESS", b"")
    put("d/readme.txt", b"words")
    assert dataset("d").rows() == ALL
    assert dataset("d/").rows() == ALL


@FORMATS
def test_a_pattern_picks_files(suffix: str, put: Put, dataset: Make) -> None:
    put(f"d/a1{suffix}", writing.FORMATS[suffix](ONE))
    put(f"d/a2{suffix}", writing.FORMATS[suffix](TWO))
    put(f"d/b/a3{suffix}", writing.FORMATS[suffix](TWO))
    assert dataset(f"d/a*{suffix}").rows() == ALL
    assert dataset(f"d/a[!2]{suffix}").rows() == ONE
    assert len(dataset(f"d/**/*{suffix}").rows()) == 4
    assert dataset(f"d/?/a3{suffix}").rows() == TWO


@FORMATS
def test_partition_folders_become_typed_columns(suffix: str, put: Put, dataset: Make) -> None:
    put(f"d/y=2023/k=a%20b/x{suffix}", writing.FORMATS[suffix](ONE[:1]))
    put(f"d/y=2024/k=c/x{suffix}", writing.FORMATS[suffix](TWO))
    assert dataset("d").rows() == [
        {"id": 1, "name": "a", "y": 2023, "k": "a b"},
        {"id": 3, "name": "c", "y": 2024, "k": "c"},
    ]
    assert dataset("d").rows("SELECT id FROM t WHERE y = 2024") == [{"id": 3}]
    assert dataset(f"d/y=*/*/x{suffix}").rows("SELECT y FROM t ORDER BY 1")[0] == {"y": 2023}
    assert dataset("d", hive_partitioning_enabled="false").rows() == [ONE[0], TWO[0]]


@pytest.mark.parametrize("packing", writing.PACKERS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".ndjson"])
def test_packed_text_is_unpacked(suffix: str, packing: str, put: Put, dataset: Make) -> None:
    packed = writing.PACKERS[packing]
    put(f"d/1{suffix}{packing}", packed(writing.FORMATS[suffix](ONE)))
    put(f"d/2{suffix}{packing}", packed(writing.FORMATS[suffix](TWO)))
    put("named.dat", packed(writing.FORMATS[suffix](ONE)))
    assert dataset("d").rows() == ALL
    compression = packing[1:]
    named = dataset("named.dat", file_format=suffix[1:], file_compression_type=compression)
    assert named.rows() == ONE


@FORMATS
def test_a_damaged_file_is_named(suffix: str, put: Put, dataset: Make) -> None:
    put(f"x{suffix}", b"\xff\xfe\x00damaged" * 9)
    error = refused(dataset(f"x{suffix}"))
    assert error.type == "invalid"
    assert f"x{suffix}" in error.message


def test_missing_things_are_not_found(tmp_path: Path, put: Put, dataset: Make) -> None:
    (tmp_path / "empty").mkdir()
    put("d/x.csv", "a\n1\n")
    for path in ("nope.csv", "empty", "d/*.parquet", "nope/"):
        error = refused(dataset(path))
        assert error.type == "not_found", path
        assert str(tmp_path / path.rstrip("/")) in error.message
    assert ".parquet" in refused(dataset("d", file_format="parquet")).message


def test_unreadable_files_are_refused(put: Put, dataset: Make) -> None:
    path = put("x.csv", "a\n1\n")
    path.chmod(0)
    with nobody():
        assert refused(dataset("x.csv")).type == "auth"


def test_params_are_checked(put: Put, dataset: Make) -> None:
    put("x.csv", "a\n1\n")
    error = refused(dataset("x.csv", csv_has_heder="true"))
    assert error.type == "invalid" and "did you mean 'csv_has_header'" in error.message
    assert "one ASCII character" in refused(dataset("x.csv", csv_delimiter="ab")).message
    assert "true or false" in refused(dataset("x.csv", csv_has_header="perhaps")).message
    assert "did you mean 'parquet'" in refused(dataset("x.csv", file_format="parket")).message


def test_a_format_that_the_name_does_not_tell_must_be_given(put: Put, dataset: Make) -> None:
    put("x.dat", "a\n1\n")
    assert "file_format" in refused(dataset("x.dat")).message
    assert dataset("x.dat", file_format="csv").rows() == [{"a": 1}]
    put("d/x.csv", "a\n1\n")
    put("d/y.avro", writing.avro(ONE))
    assert "avro, csv" in refused(dataset("d")).message
    assert dataset("d", file_format="csv").rows() == [{"a": 1}]
    put("e/x.dat", "a\n2\n")
    assert dataset("e", file_format="csv", file_extension="dat").rows() == [{"a": 2}]


def test_names_with_glob_characters_and_blanks_are_taken_as_they_stand(
    put: Put, dataset: Make
) -> None:
    put("a [x]?%20.csv", "a\n1\n")
    assert dataset("a [x]?%20.csv").rows() == [{"a": 1}]


def test_file_urls_and_absolute_paths_are_understood(put: Put, dataset: Make) -> None:
    path = put("x.csv", "a\n1\n")
    assert dataset(str(path)).rows() == dataset(f"//{path}").rows() == [{"a": 1}]


@pytest.mark.parametrize("suffix", [".parquet", ".json", ".ndjson", ".avro"])
def test_a_new_file_of_a_folder_shows_in_the_next_query(
    suffix: str, put: Put, dataset: Make
) -> None:
    put(f"d/1{suffix}", writing.FORMATS[suffix](ONE))
    context = reading.context(dataset("d").resolve())
    count = "SELECT count(*) AS n FROM t"
    assert context.sql(count).to_pydict() == {"n": [2]}
    put(f"d/sub/2{suffix}", writing.FORMATS[suffix](TWO))
    assert context.sql(count).to_pydict() == {"n": [3]}
    (Path(dataset("d").base_dir) / f"d/1{suffix}").unlink()
    assert context.sql(count).to_pydict() == {"n": [1]}


@FORMATS
def test_the_fingerprint_follows_the_files(suffix: str, put: Put, dataset: Make) -> None:
    put(f"d/1{suffix}", writing.FORMATS[suffix](ONE))
    seen = [dataset("d").fingerprint()]
    assert dataset("d").fingerprint() == seen[0]
    put(f"d/2{suffix}", writing.FORMATS[suffix](TWO))
    seen.append(dataset("d").fingerprint())
    put(f"d/2{suffix}", writing.FORMATS[suffix](ALL))
    seen.append(dataset("d").fingerprint())
    (Path(dataset("d").base_dir) / f"d/1{suffix}").unlink()
    seen.append(dataset("d").fingerprint())
    assert len(set(seen)) == 4


def test_null_partitions_and_dates(put: Put, dataset: Make) -> None:
    put("d/day=2024-01-31/x.parquet", writing.parquet(ONE[:1]))
    put("d/day=__HIVE_DEFAULT_PARTITION__/x.parquet", writing.parquet(TWO))
    assert dataset("d").rows("SELECT id, day FROM t ORDER BY 1") == [
        {"id": 1, "day": date(2024, 1, 31)},
        {"id": 3, "day": None},
    ]


def test_declared_columns_win(put: Put, dataset: Make) -> None:
    put("d/k=1/x.csv", "a,b\n1,2\n")
    declared = [
        pa.field("b", pa.float64()),
        pa.field("k", pa.int32()),
        pa.field("extra", pa.date32()),
    ]
    spec = dataset("d", declared).files()
    assert [(each.name, each.type) for each in spec.schema] == [
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("extra", pa.date32()),
        ("k", pa.int32()),
    ]
    assert reading.query(spec) == [{"a": 1, "b": 2.0, "extra": None, "k": 1}]


def test_a_file_that_vanishes_is_seen(put: Put, dataset: Make) -> None:
    path = put("x.csv", "a\n1\n")
    table = dataset("x.csv")
    spec, before = table.resolve(), table.fingerprint()
    path.unlink()
    assert reading.query(spec) == []
    with pytest.raises(DatasetError, match=r"x\.csv' does not exist"):
        assert table.fingerprint() != before


def test_a_link_to_a_parent_folder_is_followed_once(put: Put, dataset: Make) -> None:
    put("d/x.csv", "a\n1\n").with_name("again").symlink_to("..", target_is_directory=True)
    assert dataset("d").rows() == [{"a": 1}]


def test_a_pattern_skips_files_of_unknown_format(put: Put, dataset: Make) -> None:
    put("d/x.csv", "a\n1\n")
    put("d/readme", "words")
    assert dataset("d/*").rows() == [{"a": 1}]

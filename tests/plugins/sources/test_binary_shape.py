"""The columns of files with a schema, and how many bytes each takes where the file says."""

import io
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from caraway_plugins.sources import binary_shape, shapes
from tests.plugins.sources import reading, writing

Make = Callable[..., reading.Dataset]
NESTED: dict[str, Any] = {
    "a": [1, 2],
    "s": [{"x": 1, "y": {"z": "q"}}] * 2,
    "l": [[1], [2]],
    "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    "f": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
    "d": pa.array(["x", "y"]).dictionary_encode(),
    "deep": pa.array([[{"p": 1, "q": [1]}], []]),
    "a.b": ["a name with a dot"] * 2,
}


@pytest.fixture
def made(tmp_path: Path) -> Make:
    def make(path: str, **params: str) -> reading.Dataset:
        return reading.Dataset("file", path, tmp_path, params)

    return make


def sizes_in(rows: pa.Table, **options: Any) -> tuple[bytes, dict[str, int]]:
    """Write a file; return it, and the sizes by the top of the path of each of its columns."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    metadata, found = pq.ParquetFile(sink).metadata, dict.fromkeys(rows.column_names, 0)
    for number in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(number).column(index)
            path = column.path_in_schema
            name = path if path in found else path.split(".")[0]
            found[name] += column.total_compressed_size
    return sink.getvalue(), found


def test_nested_columns_count_whole(tmp_path: Path, made: Make) -> None:
    content, expected = sizes_in(pa.table(NESTED))
    (tmp_path / "t.parquet").write_bytes(content)
    assert made("t.parquet").files().column_bytes == expected
    assert all(expected.values()) and sum(expected.values()) < len(content)


def test_the_files_of_a_folder_add_up_by_name(tmp_path: Path, made: Make) -> None:
    one, of_one = sizes_in(pa.table({"a": range(1000), "text": ["x" * 50] * 1000}))
    two, of_two = sizes_in(pa.table({"text": ["y"] * 10, "other": [1.5] * 10}))
    for name, content in {"d/k=1/1.parquet": one, "d/k=2/2.parquet": two}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(content)
    expected = {
        "a": of_one["a"], "text": of_one["text"] + of_two["text"], "other": of_two["other"],
    }  # fmt: skip
    assert made("d/").files().column_bytes == expected


def test_many_row_groups_are_estimated_from_the_first(tmp_path: Path, made: Make) -> None:
    rows = pa.table({"a": list(range(4000)), "b": ["same"] * 4000})
    content, exact = sizes_in(rows, row_group_size=100, compression="none", use_dictionary=False)
    (tmp_path / "t.parquet").write_bytes(content)
    found = made("t.parquet").files().column_bytes
    assert found == {name: pytest.approx(size, rel=0.1) for name, size in exact.items()}


def test_a_file_without_rows_is_known_to_be_empty(tmp_path: Path, made: Make) -> None:
    content, _ = sizes_in(pa.table({"a": pa.array([], pa.int64())}))
    (tmp_path / "t.parquet").write_bytes(content)
    assert made("t.parquet").files().column_bytes == {"a": 0}


@pytest.mark.parametrize("suffix", sorted(writing.FORMATS.keys() - {".parquet", ".orc"}))
def test_other_formats_do_not_say(suffix: str, tmp_path: Path, made: Make) -> None:
    (tmp_path / f"t{suffix}").write_bytes(writing.FORMATS[suffix]([{"id": 1}]))
    files = made(f"t{suffix}").files()
    assert (files.column_bytes, files.row_count, files.ranges) == ({}, None, ())


RANGED = {
    "k": pa.array([3, 1, 9, 7]),
    "d": pa.array([Decimal("1.5"), None, Decimal("-2.0"), Decimal("0.5")], pa.decimal128(20, 2)),
    "day": pa.array([date(1970, 1, 3)] * 4),
    "text": pa.array(["a"] * 4),
    "part": pa.array([0.5] * 4),
    "moment": pa.array([2**62] * 4, pa.timestamp("us")),
    "none": pa.array([None] * 4, pa.int32()),
    "far": pa.array([3_000_000] * 4, pa.int32()).cast(pa.date32()),
    "inside": pa.array([{"k": 100}] * 4),
}
EXPECTED = {"k": (1.0, 9.0), "d": (-2.0, 1.5), "day": (2.0, 2.0)}


def test_rows_and_ranges_are_those_of_all_files(tmp_path: Path, made: Make) -> None:
    (tmp_path / "d").mkdir()
    rows = pa.table(RANGED)
    for number in range(2):
        content, _ = sizes_in(rows.slice(2 * number, 2), row_group_size=1)
        (tmp_path / "d" / f"{number}.parquet").write_bytes(content)
    files = made("d/").files()
    assert files.row_count == 4
    assert {name: each for name, each in files.ranges if "." not in name} == EXPECTED
    assert hash(files.ranges)


def test_ranges_of_many_files_are_those_of_some(
    tmp_path: Path, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "_RANGED", 3)
    (tmp_path / "d").mkdir()
    for number in range(7):
        content, _ = sizes_in(pa.table({"k": [number]}))
        (tmp_path / "d" / f"{number}.parquet").write_bytes(content)
    files = made("d/").files()
    assert (files.row_count, files.ranges) == (7, (("k", (0.0, 6.0)),))
    (tmp_path / "d" / "1.parquet").write_bytes(sizes_in(pa.table({"k": [-5]}))[0])
    assert made("d/").files().ranges == (("k", (0.0, 6.0)),)


def test_ranges_have_the_names_of_the_table(tmp_path: Path, made: Make) -> None:
    (tmp_path / "t.parquet").write_bytes(sizes_in(pa.table({"A Key": [1, 2]}))[0])
    assert made("t.parquet", normalize_names="true").files().ranges == (("a_key", (1.0, 2.0)),)


def test_columns_that_cannot_be_told_apart_have_no_size() -> None:
    content, _ = sizes_in(pa.table(NESTED))
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    assert binary_shape._column_bytes(metadata.schema.to_arrow_schema(), metadata)
    # As of an extension whose values are nested.
    assert binary_shape._column_bytes(pa.schema({"a": pa.int64()}), metadata) == ()


def test_scans_say_whether_fields_of_null_structs_hold_values(tmp_path: Path, made: Make) -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    values = [{"a": 1}, None]
    optional = pa.table({"s": values, "n": [1, 2]})
    for name, rows in (("r", pa.table({"s": pa.array(values, required)})), ("o", optional)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    # A file of two makes the columns of the table as if none was required.
    (tmp_path / "d").mkdir()
    for name in ("o.parquet", "r.parquet"):
        (tmp_path / "d" / name).write_bytes((tmp_path / name).read_bytes())
    feather.write_feather(optional, tmp_path / "s.arrow")
    feather.write_feather(optional.select(["n"]), tmp_path / "n.arrow")
    found = {
        path: [scan.is_unmasked for scan in made(path).files().scans]
        for path in ("r.parquet", "o.parquet", "d/", "s.arrow", "n.arrow")
    }
    assert found == {
        "r.parquet": [True], "o.parquet": [False], "d/": [True], "s.arrow": [True],
        "n.arrow": [False],
    }  # fmt: skip

"""Names of columns that need no quotes, in files of every format."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from tests.plugins.sources import reading, writing

ROWS = [
    {"Order ID": 1, "Net (EUR)": 1.5, "plain": "a"},
    {"Order ID": 2, "Net (EUR)": 2.5, "plain": "b"},
]
PLAIN = [
    {"order_id": 1, "net_eur": 1.5, "plain": "a"}, {"order_id": 2, "net_eur": 2.5, "plain": "b"},
]  # fmt: skip


def dataset(folder: Path, path: str, *declared: pa.Field, **params: str) -> reading.Dataset:
    return reading.Dataset("file", path, folder, {"normalize_names": "true", **params}, declared)


@pytest.mark.parametrize("suffix", [each for each in writing.FORMATS if each != ".avro"])
def test_names_of_every_format_need_no_quotes(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"x{suffix}").write_bytes(writing.FORMATS[suffix](ROWS))
    found = dataset(tmp_path, f"x{suffix}")
    assert found.rows() == PLAIN
    assert found.rows("SELECT plain FROM t WHERE order_id = 2 AND net_eur > 2") == [{"plain": "b"}]
    assert found.rows("SELECT count(*) AS n FROM t") == [{"n": 2}]
    assert reading.Dataset("file", f"x{suffix}", tmp_path, {}).rows() == ROWS


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".arrow"])
def test_files_that_spell_a_name_differently_are_one_column(tmp_path: Path, suffix: str) -> None:
    write = writing.FORMATS[suffix]
    for name, key in (("a", "Order ID"), ("b", "order_id"), ("c", "ORDER-ID")):
        (tmp_path / f"{name}{suffix}").write_bytes(write([{key: ord(name), "x": name}]))
    found = dataset(tmp_path, "./")
    assert found.files().schema.names == ["order_id", "x"]
    expected = [{"order_id": ord(each), "x": each} for each in "abc"]
    assert found.rows() == expected
    spec = found.resolve()
    (tmp_path / f"d{suffix}").write_bytes(write([{"Order  Id": 200, "x": "d"}]))
    assert reading.query(spec) == expected, "a later file is read once the listing is read again"
    assert found.rows() == [*expected, {"order_id": 200, "x": "d"}]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_keys_of_folders_need_no_quotes(tmp_path: Path, suffix: str) -> None:
    for year in (2023, 2024):
        folder = tmp_path / f"Sold in={year}"
        folder.mkdir()
        (folder / f"x{suffix}").write_bytes(writing.FORMATS[suffix]([{"Order ID": year}]))
    found = dataset(
        tmp_path, "./", pa.field("sold_in", pa.int32()), pa.field("order_id", pa.int16())
    )
    assert found.rows() == [{"order_id": year, "sold_in": year} for year in (2023, 2024)]
    assert found.files().schema.types == [pa.int16(), pa.int32()]
    assert found.rows("SELECT order_id FROM t WHERE sold_in = 2024") == [{"order_id": 2024}]


def test_fields_of_structs_keep_their_names_and_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"The Item": {"A b": 1, "c": 2}}\n')
    found = dataset(tmp_path, "x.json")
    sql = "SELECT the_item['A b'] AS b, the_item['c'] AS c FROM t WHERE the_item['c'] = 2"
    assert found.rows(sql) == [{"b": 1, "c": 2}]


def test_a_header_may_repeat_a_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("Amount,Amount,amount\n1,2,3\n")
    assert dataset(tmp_path, "x.csv").rows() == [{"amount_2": 1, "amount_3": 2, "amount": 3}]


def test_sizes_of_columns_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(writing.parquet(ROWS))
    plain = dict(reading.Dataset("file", "x.parquet", tmp_path, {}).files().column_bytes)
    assert list(plain.values()) == list(
        dataset(tmp_path, "x.parquet").files().column_bytes.values()
    )
    assert list(dataset(tmp_path, "x.parquet").files().column_bytes) == list(PLAIN[0])


def test_a_wrong_flag_is_refused_for_rows_and_changes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(DatasetError, match=r"params\.normalize_names is 'yes'"):
        dataset(tmp_path, "x.csv", normalize_names="yes").resolve()
    before = dataset(tmp_path, "x.csv").fingerprint()
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    assert dataset(tmp_path, "x.csv").fingerprint() != before

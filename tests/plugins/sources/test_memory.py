"""Tables in memory."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.tables import MemoryTable
from tests.plugins.sources import reading


def dataset(
    tmp_path: Path, data: str = "", *declared: pa.Field, path: str = "rows"
) -> reading.Dataset:
    return reading.Dataset("memory", path, tmp_path, {"data": data} if data else {}, declared)


def test_declared_columns_start_empty_and_take_rows(tmp_path: Path) -> None:
    table = dataset(tmp_path, "", pa.field("id", pa.int64()), pa.field("day", pa.date32()))
    context = reading.context(table.resolve())
    assert context.sql("SELECT * FROM t").to_arrow_table().num_rows == 0
    context.sql("INSERT INTO t VALUES (1, DATE '2024-01-01')").collect()
    assert context.sql("SELECT * FROM t").to_pydict() == {"id": [1], "day": [date(2024, 1, 1)]}


@pytest.mark.parametrize("data", ['[{"a": 1, "b": "x"}, {"a": 2.5}]', '{"a":1,"b":"x"}\n{"a":2.5}'])
def test_data_gives_rows_and_columns(tmp_path: Path, data: str) -> None:
    assert dataset(tmp_path, data).rows() == [{"a": 1.0, "b": "x"}, {"a": 2.5, "b": None}]


def test_declared_types_win(tmp_path: Path) -> None:
    declared = (pa.field("d", pa.date32()), pa.field("m", pa.decimal128(9, 2)))
    table = dataset(tmp_path, '[{"d": "2024-01-02", "m": 1.25}]', *declared)
    assert table.rows() == [{"d": date(2024, 1, 2), "m": Decimal("1.25")}]
    spec = table.resolve()
    assert isinstance(spec, MemoryTable) and spec.rows.schema == spec.schema
    assert table.fingerprint() is None


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    for data, declared, type_ in (
        ("", (), "schema"),
        ('[{"a": 1}', (), "invalid"),
        ("[1]", (), "invalid"),
        ('[{"a": "x"}]', (pa.field("a", pa.int64()),), "schema"),
    ):
        with pytest.raises(DatasetError) as caught:
            dataset(tmp_path, data, *declared).resolve()
        assert caught.value.type == type_, data


def test_a_store_of_memories_has_columns_of_its_own(tmp_path: Path) -> None:
    extra = pa.field("topic", pa.string())
    table = dataset(tmp_path, '[{"id": "1", "value": "x"}]', extra, path="store")
    nothing = {"created_by": None, "created_at": None, "topic": None}
    assert table.rows() == [{"id": "1", "value": "x", **nothing}]

"""Facts of Parquet files are those of their footers and first rows."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_engine.join_orders import described
from caraway_engine.join_orders.facts import RowFacts
from tests.kit.tables import parquet

ROWS = pa.table(
    {
        "k": range(-10, 9_990),
        "day": [date(1970, 1, 1 + number % 20) for number in range(10_000)],
        "price": pa.array([Decimal(number % 100) / 4 for number in range(10_000)],
                          pa.decimal128(9, 2)),
        "text": [f"Col[0]: Min=Exact(Int64({number % 5}))" for number in range(10_000)],
    }
)  # fmt: skip


def facts(folder: Path, *, may_read: bool) -> RowFacts | None:
    parquet(folder, ROWS, 2)
    context = SessionContext()
    context.register_parquet("t", str(folder))
    return described.facts(context.catalog().schema().table("t"), ROWS.schema, may_read=may_read)


def test_ranges_and_rows_are_known(tmp_path: Path) -> None:
    found = facts(tmp_path / "t", may_read=False)

    assert found is not None
    assert found.rows == 10_000
    assert (found.columns["k"].least, found.columns["k"].greatest) == (-10.0, 9_989.0)
    assert found.columns["day"].distinct == pytest.approx(20, abs=1)
    assert found.columns["price"].greatest == 24.75
    assert "text" not in found.columns


def test_first_rows_show_how_many_texts_there_are(tmp_path: Path) -> None:
    found = facts(tmp_path / "t", may_read=True)

    assert found is not None
    assert found.columns["text"].distinct == 5
    assert found.columns["k"].distinct == 10_000

"""Values of rows as the texts that databases take."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_plugins.sources import written_texts

NAN, INF = float("nan"), float("inf")
_MOMENT = dt.datetime(2024, 2, 29, 23, 0, 0, 5)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, None, -(2**63)], pa.int64()), ["1", None, "-9223372036854775808"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), ["1.50", None]),
        (pa.array(["a'b", ""]), ["a'b", ""]),
        (pa.array([b"\x00\xff", None]), ["00ff", None]),
        (pa.array([dt.date(1, 1, 1)]), ["0001-01-01"]),
        (pa.array([_MOMENT], pa.timestamp("us")), ["2024-02-29 23:00:00.000005"]),
        (pa.array([_MOMENT, None], pa.timestamp("us", "UTC")),
         ["2024-02-29 23:00:00.000005+00", None]),
        (pa.array([_MOMENT], pa.timestamp("us", "America/New_York")),
         ["2024-02-29 23:00:00.000005+00"]),
        (pa.array([], pa.int64()), []),
    ],
)  # fmt: skip
def test_texts(values: pa.Array, texts: list[str | None]) -> None:
    assert written_texts.of(values, bytes.hex, "+00").to_pylist() == texts


def test_moments_without_a_suffix() -> None:
    values = pa.array([_MOMENT], pa.timestamp("s", "UTC"), safe=False)
    assert written_texts.of(values, bytes.hex).to_pylist() == ["2024-02-29 23:00:00"]


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.int64()), pa.struct([("x", pa.int64())]), pa.map_(pa.string(), pa.int64())],
)
def test_columns_without_a_text(type_: pa.DataType) -> None:
    with pytest.raises(InvalidQueryError, match="column 'b' is a list"):
        written_texts.check(pa.schema([("a", pa.int64()), ("b", type_)]), InvalidQueryError)
    written_texts.check(pa.schema([("a", pa.string())]), InvalidQueryError)


@pytest.mark.parametrize(
    ("number", "has_infinity", "said"),
    [
        (NAN, True, "NaN, which"),
        (NAN, False, "NaN or an infinite number"),
        (INF, False, "NaN or an infinite number"),
        (-INF, False, "NaN or an infinite number"),
        (INF, True, None),
        (None, False, None),
        (1e308, False, None),
    ],
)
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_numbers_that_a_database_lacks(
    number: float | None, has_infinity: bool, said: str | None, type_: pa.DataType
) -> None:
    if number == 1e308:
        type_ = pa.float64()
    batch = pa.record_batch({"i": [1, 2], "f": pa.array([1.0, number], type_)})
    if said is None:
        written_texts.check_numbers(batch, InvalidQueryError, has_infinity=has_infinity)
        return
    with pytest.raises(InvalidQueryError, match=f"column 'f' has {said}"):
        written_texts.check_numbers(batch, InvalidQueryError, has_infinity=has_infinity)

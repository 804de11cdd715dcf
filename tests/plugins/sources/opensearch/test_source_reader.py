"""A page of documents has the values that each of its documents has alone."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import values
from caraway_plugins.sources.opensearch.source_reader import SourceReader

POOLS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", "", None, 1, Decimal("1.10"), True, ["x"], {"b": 1}],
    pa.int64(): [1, None, "2", Decimal("3.0"), 2**62, -1, 2**64, "x", True],
    pa.float64(): [Decimal("1.5"), None, 2, "2.5", Decimal("1e300"), 0.5, 2**53 + 1],
    pa.bool_(): [True, False, None, "true", "", "no"],
    pa.decimal128(20, 2): [Decimal("1.10"), None, 3, "4.5"],
    pa.date32(): ["2024-02-29", None, 0, "2024", "2024-01-01T00:00:01Z"],
    pa.timestamp("ms"): [
        "2024-02-29T12:30:15.123Z", "2024-02-29T12:30:15Z", "2024-02-29", None, "2023-02-29",
        "0001-01-01", "2024-02-29T24:00:00Z", "2024-02-29T12:30:15.123456Z", "2024", 1_700_000,
        "2024-02-29T12:30:15+01:00", "2024-02-29 12:30:15", "9999-12-31T23:59:59.999Z",
    ],
    pa.list_(pa.string()): [["a", None], None, [], "b", [["c"]], [1], ["d", "e"]],
    pa.list_(pa.int64()): [[1], None, [], 2, ["3"], [1, 2]],
}  # fmt: skip
POOLS[pa.timestamp("us", "UTC")] = POOLS[pa.timestamp("s")] = POOLS[pa.timestamp("ms")]


def read(type_: pa.DataType, page: list[Any]) -> pa.RecordBatch | None:
    """Return the rows of a page; None if a value does not fit."""
    field = pa.field("f", type_)
    reader = SourceReader([field], frozenset(), frozenset(), "it")
    try:
        found = reader.columns({"f": each} for each in page)
        return values.batch_of(found, pa.schema([field]), frozenset(), "it")
    except DatasetError:
        return None


@pytest.mark.parametrize("type_", POOLS, ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_pages_have_the_values_of_their_documents(type_: pa.DataType, data: st.DataObject) -> None:
    # Often a page has values of one kind.
    pool = data.draw(st.lists(st.sampled_from(POOLS[type_]), min_size=1, max_size=3))
    page = data.draw(st.lists(st.sampled_from(pool), max_size=5))
    alone = [read(type_, [each]) for each in page]
    whole = read(type_, page)
    if None in alone:
        assert whole is None
    else:
        assert whole is not None
        assert whole.to_pylist() == [row for each in alone if each for row in each.to_pylist()]


def test_moments_of_one_form_are_read_at_once() -> None:
    reader = SourceReader([pa.field("f", pa.timestamp("ms"))], frozenset(), frozenset(), "it")
    for text in ("2024-02-29T12:30:15.123Z", "2024-02-29"):
        assert isinstance(reader.columns([{"f": text}, {"f": None}])["f"], pa.Array)

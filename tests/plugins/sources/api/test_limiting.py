"""Params that limit requests."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import limiting, table
from caraway_plugins.sources.api.sending import ApiLimits
from caraway_plugins.sources.params import Params


def limits(*columns: pa.DataType, **params: str) -> ApiLimits:
    declared = tuple(pa.field(f"c{number}", type_) for number, type_ in enumerate(columns))
    at = Path("/")
    request = SourceRequest(TableName("t"), "http", "h", params, declared, "read", at, at)
    return limiting.limits_of(request, Params(params))


def test_usual_limits() -> None:
    assert limits() == ApiLimits()


@pytest.mark.parametrize(
    ("params", "interval_s"),
    [
        ({"requests_per_second_limit": "4"}, 0.25),
        ({"requests_per_minute_limit": "30"}, 2.0),
        ({"requests_per_second_limit": "4", "requests_per_minute_limit": "60"}, 1.0),
        ({"requests_per_second_limit": "1", "requests_per_minute_limit": "600"}, 1.0),
    ],
)
def test_the_stricter_of_two_rates_counts(params: dict[str, str], interval_s: float) -> None:
    assert limits(**params).interval_s == interval_s


@pytest.mark.parametrize(("text", "retries"), [("0", 0), ("7", 7)])
def test_retries_may_be_none(text: str, retries: int) -> None:
    assert limits(max_retries=text).retries == retries


@pytest.mark.parametrize(
    ("type_", "is_exact"),
    [
        (pa.float64(), False),
        (pa.decimal128(9, 2), True),
        (pa.list_(pa.struct([("a", pa.decimal256(50, 2))])), True),
        (pa.map_(pa.string(), pa.decimal128(9, 2)), True),
        (pa.struct([("a", pa.list_(pa.int64()))]), False),
    ],
)
def test_decimals_need_all_digits(type_: pa.DataType, is_exact: bool) -> None:
    assert limits(pa.int64(), type_).is_exact is is_exact


@pytest.mark.parametrize("name", ["max_retries", "requests_per_second_limit", "client_timeout"])
@pytest.mark.parametrize("text", ["many", "-1", "1.5x"])
def test_params_that_are_wrong(name: str, text: str) -> None:
    with pytest.raises(DatasetError, match=name):
        limits(**{name: text})


@pytest.mark.parametrize(
    ("params", "pages"),
    [
        ({}, table.USUAL_PAGES),
        ({"pagination_max_pages": "5"}, 5),
        ({"pagination_max_pages": "nolimit"}, table.MOST_PAGES),
        ({"pagination_max_pages": str(10**12)}, table.MOST_PAGES),
    ],
)
def test_pages_are_bounded(params: dict[str, str], pages: int) -> None:
    assert limiting.most_pages(Params(params)) == pages


def test_numbers_may_be_zero() -> None:
    assert limiting.number(Params({"depth": "0"}), "depth", 3) == 0
    assert limiting.number(Params({"depth": "2"}), "depth", 3) == 2
    assert limiting.number(Params({}), "depth", 3) == 3

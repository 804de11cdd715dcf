"""Params that limit the requests of all datasets over APIs."""

import pyarrow as pa

from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import table
from caraway_plugins.sources.api.sending import ApiLimits
from caraway_plugins.sources.params import Params


def limits_of(request: SourceRequest, known: Params) -> ApiLimits:
    """Return the limits that the params set.

    Raises:
        DatasetError: a param is wrong.
    """
    usual = ApiLimits()
    retries = known.text("max_retries")
    return ApiLimits(
        timeout_s=known.seconds("client_timeout", usual.timeout_s),
        connect_s=known.seconds("connect_timeout", usual.connect_s),
        retries=0 if retries == "0" else known.count("max_retries") or usual.retries,
        wait_s=known.seconds("retry_max_duration", usual.wait_s),
        interval_s=_interval_s(known),
        is_exact=any(map(_has_decimals, request.declared)),
    )


def number(known: Params, name: str, default: int) -> int:
    """Return a param that may be zero.

    Raises:
        DatasetError: it is not a number.
    """
    return 0 if known.text(name) == "0" else known.count(name) or default


def most_pages(known: Params) -> int:
    """Return the number of pages after which reading ends with an error.

    Raises:
        DatasetError: it is not a number.
    """
    if known.text("pagination_max_pages") == "nolimit":
        return table.MOST_PAGES
    return min(known.count("pagination_max_pages") or table.USUAL_PAGES, table.MOST_PAGES)


def _interval_s(params: Params) -> float:
    """Return the least time between two requests."""
    by_second = params.count("requests_per_second_limit")
    by_minute = params.count("requests_per_minute_limit")
    return max(1 / by_second if by_second else 0.0, 60 / by_minute if by_minute else 0.0)


def _has_decimals(field: pa.Field) -> bool:
    found = [field.type]
    while found:
        type_ = found.pop()
        if pa.types.is_decimal(type_):
            return True
        found += [type_.field(number).type for number in range(type_.num_fields)]
    return False

"""Compares answers of TPC queries, with the tolerance that their rules allow."""

from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from tests.differential.comparing import Outcome

RELATIVE = 1e-9


def table(outcome: Outcome) -> pa.Table:
    assert not isinstance(outcome, QueryError), outcome
    return outcome


def is_same(ours: object, theirs: object, scale: int | None) -> bool:
    """Sums of decimals are exact in both; an average of decimals is a double in DuckDB."""
    if isinstance(ours, Decimal) and isinstance(theirs, float):
        return abs(float(ours) - theirs) <= 10.0 ** -(scale or 0) + RELATIVE * abs(theirs)
    if isinstance(ours, float) and isinstance(theirs, float | Decimal):
        return ours == pytest.approx(float(theirs), rel=RELATIVE)
    return ours == theirs

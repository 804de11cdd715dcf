"""A sum is exact, or an error that says so."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.engine.known_faults.memory import Asked

_HUGE = 9 * 10**37
_CENTS = Decimal("0.01")


@pytest.fixture(scope="module")
def sums() -> Asked:
    return Asked(
        # As doubles, the numbers of `close` are one number.
        close=pa.table({
            "g": [1, 1, 1, 2, 2],
            "d": pa.array(
                [*(Decimal(_HUGE + n) for n in range(3)), Decimal(7), None], pa.decimal128(38, 0)
            ),
        }),
        cents=pa.table({
            "g": [1, 1, 2, 2],
            "d": pa.array([_CENTS, _CENTS, -5 * _CENTS, None], pa.decimal128(38, 2)),
            "x": pa.array([2**63 - 1, -(2**63), 3, 3], pa.int64()),
            "u": pa.array([2**64 - 1, 0, 0, None], pa.uint64()),
        }),
    )  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(d) FROM close",
        "SELECT sum(DISTINCT d) FROM close",
        "SELECT sum(DISTINCT -d) FROM close",
        "SELECT sum(DISTINCT d), count(DISTINCT d) FROM close",
        "SELECT g, sum(DISTINCT d) FROM close GROUP BY g",
        "SELECT g FROM close GROUP BY g HAVING sum(DISTINCT d) > 0",
        "SELECT sum(DISTINCT d) FILTER (WHERE g = 1) FROM close",
    ],
)
def test_a_sum_of_decimals_that_wraps_around_is_an_error(sums: Asked, sql: str) -> None:
    sums.engine(sql)

    with pytest.raises(Exception, match="number overflow in sum of DECIMAL"):
        sums.mended(sql)


CORRECT: dict[str, Any] = {
    "SELECT sum(DISTINCT d) FROM close WHERE g = 2": [(Decimal(7),)],
    "SELECT sum(DISTINCT d) FROM close WHERE false": [(None,)],
    "SELECT g, sum(DISTINCT d) FROM cents GROUP BY g": [
        (1, _CENTS), (2, -5 * _CENTS),
    ],
    "SELECT sum(DISTINCT d), sum(d), count(*) FROM cents": [(-4 * _CENTS, -3 * _CENTS, 4)],
    "SELECT sum(x) FROM cents": [(5,)],
    "SELECT sum(DISTINCT x) FROM cents": [(2,)],
    "SELECT sum(x) FILTER (WHERE g = 9) FROM cents": [(None,)],
    "SELECT sum(u) FROM cents": [(2**64 - 1,)],
    "SELECT sum(u) FROM cents WHERE g = 9": [(None,)],
    "SELECT sum(x) OVER (PARTITION BY g) FROM cents WHERE g = 1": [(-1,), (-1,)],
    "SELECT count(*) FROM cents HAVING sum(x) = 5 AND sum(d) < 0": [(4,)],
    'SELECT "sum"(x) AS "sum(x)" FROM cents': [(5,)],
}  # fmt: skip


@pytest.mark.parametrize("sql", CORRECT)
def test_a_sum_that_fits_is_exact(sums: Asked, sql: str) -> None:
    assert sums.text(sql) != sql
    assert sums.mended(sql) == CORRECT[sql] == sums.engine(sql)

"""Statements that the plain engine answers wrongly, with what users get."""

from dataclasses import dataclass

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A statement that shows a fault. `right` are its rows in any order, if it is answered.

    Otherwise `refusal` is a part of what the error says.
    """

    fault: str
    sql: str
    right: tuple[Row, ...] | None = None
    refusal: str = ""


def answered(fault: str, sql: str, *right: Row) -> Case:
    return Case(fault, sql, right)


def refused(fault: str, sql: str, refusal: str) -> Case:
    return Case(fault, sql, refusal=refusal)


CASES = (
    refused("integer-overflow", "SELECT x + 1 FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT 1 + x FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT x + id FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT m - 1 FROM big", "-9223372036854775809 does not fit"),
    refused("integer-overflow", "SELECT m - id FROM big", "-9223372036854775809 does not fit"),
    refused("integer-overflow", "SELECT x * 2 FROM big", "18446744073709551614 does not fit"),
    refused("integer-overflow", "SELECT x * x FROM big", "does not fit the type BIGINT"),
    refused(
        "integer-overflow",
        "SELECT -n FROM (SELECT id, min(m) AS n FROM big GROUP BY id) q",
        "9223372036854775808 does not fit",
    ),
    refused("integer-overflow", "SELECT s + s FROM big", "4294967294 does not fit the type INT"),
    refused("integer-overflow", "SELECT y + y FROM big", "does not fit the type BIGINT UNSIGNED"),
    refused("integer-overflow", "SELECT id FROM big WHERE x + 1 < 0", "does not fit"),
    refused("integer-overflow", "SELECT 9223372036854775807 + 1", "does not fit"),
    refused("integer-overflow", "SELECT x + 1 AS n, count(*) FROM big GROUP BY x + 1", "not fit"),
    refused(
        "integer-overflow",
        "SELECT a.id FROM big a JOIN big b ON a.x + 1 = b.m",
        "9223372036854775808 does not fit",
    ),
    refused("sum-overflow", "SELECT sum(x) FROM big", "sum of BIGINT is too large"),
    refused("sum-overflow", "SELECT sum(y) FROM big", "sum of BIGINT UNSIGNED is too large"),
    refused("sum-overflow", "SELECT sum(d) FROM big", "sum of DECIMAL is too large"),
    refused("sum-overflow", "SELECT sum(DISTINCT x) FROM big", "9223372036854775808 does not fit"),
    refused("sum-overflow", "SELECT sum(x) OVER (ORDER BY id) FROM big", "sum of BIGINT"),
    refused("sum-overflow", "SELECT id % 1, sum(x) FROM big GROUP BY id % 1", "sum of BIGINT"),
)  # fmt: skip

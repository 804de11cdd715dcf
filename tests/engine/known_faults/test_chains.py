"""Long chains of arithmetic: guarded against overflow, and planned in no time."""

import pytest

from caraway_core.errors import InvalidQueryError
from tests.kit.engine import memory, rows, session

MOST = 2**63 - 1
TABLE = {"t": memory(a=[1, -2], b=[5, 7], m=[MOST, MOST])}


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (" + ".join("a" for _ in range(16)), [16, -32]),
        (" + ".join("a" for _ in range(64)), [64, -128]),
        ("a - b + a - (b - a) - b", [-12, -27]),
        ("a - b - a - b - (a * b - b * a - (a + b))", [-4, -9]),
        ("a * b + a * b + a * b - a * b", [10, -28]),
        ("m + a - a + a - a", [MOST, MOST]),
        (" * ".join("a" for _ in range(16)), [1, 65536]),
        (" * ".join("a" for _ in range(62)), [1, 2**62]),
        ("a * (b - a) * (b * a - b) * a * 1", [0, -756]),
        ("a - (a * b * a * b - a) * (a - b)", [97, 1780]),
        ("a - (" * 11 + "a" + ")" * 11, [0, 0]),
    ],
)
async def test_a_chain_is_planned_and_exact(expression: str, values: list[int]) -> None:
    # Each level of a guard held its operand four times: 12 terms took minutes and gigabytes.
    found = await rows(session(TABLE), f"SELECT {expression} AS x FROM t ORDER BY a DESC")
    assert [row["x"] for row in found] == values


@pytest.mark.parametrize(
    "expression",
    [
        "m + a + a + b + b + b",
        "m - a + b + b + b + b",
        "m * b * a * a * a",
        " * ".join(["b"] * 40),
        " * ".join(["m"] * 16),
        " * ".join(["m"] * 99),
    ],
)
async def test_a_chain_that_overflows_is_an_error(expression: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"(?i)overflow"):
        await rows(session(TABLE), f"SELECT {expression} AS x FROM t WHERE a = 1")

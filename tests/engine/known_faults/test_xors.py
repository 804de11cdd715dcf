"""XOR of values that occur twice, against the function of DuckDB."""

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.engine.known_faults.memory import Asked, duckdb_over
from tests.kit import generating

ROWS = pa.table({
    "a": pa.array([1, None, 4, None, 5], pa.int64()),
    "b": pa.array([2, 3, None, None, 5], pa.int64()),
})  # fmt: skip
_VALUES = ("a", "b", "x.a", "a + 1", "7", "b")


@st.composite
def pairs(draw: DrawFn) -> tuple[str, str]:
    """Draw an expression with the sign, and the same one with the function."""
    written, meant = (value := draw(st.sampled_from(_VALUES))), f"({value})"
    for _ in range(draw(st.integers(1, 4))):
        value = draw(st.sampled_from(_VALUES))
        operands = [(f"({written})", meant), (f"({value})", f"({value})")]
        (left, first), (right, second) = draw(st.permutations(operands))
        written, meant = f"{left} ^ {right}", f"xor({first}, {second})"
    return written, meant


@pytest.fixture(scope="module")
def of() -> Asked:
    return Asked(x=ROWS)


def test_generated_chains(of: Asked) -> None:
    duck = duckdb_over({"x": ROWS})

    def check(pair: tuple[str, str]) -> None:
        written, meant = pair
        for form in (
            "SELECT {} AS r, a FROM x",
            "SELECT a, b FROM x WHERE ({}) IS NULL",
            "SELECT {} AS r, count(*) AS n FROM x GROUP BY 1 HAVING count(*) < 3",
            "SELECT max({}) AS r FROM x WHERE ({}) > 1",
        ):
            found = of.mended(form.replace("{}", written))
            right = duck.sql(form.replace("{}", meant)).fetchall()
            assert found == sorted(right, key=str), written

    generating.check_same(pairs(), 200, check)


def test_names_and_other_statements_stay(of: Asked) -> None:
    assert of.text("SELECT a ^ b FROM x") == "SELECT a ^ b FROM x"
    assert of.text("SELECT a ^ b ^ a AS r FROM x").startswith("SELECT (CASE WHEN (a) IS NULL")

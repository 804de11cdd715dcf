import pytest

from caraway_core.sqltext import constants


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "$1",
        "'a' || 'b'",
        "-1.5e3 * (2 + 3)",
        "CAST('1' AS DOUBLE PRECISION)",
        "now() - INTERVAL '1' day",
        "CASE WHEN TRUE THEN NULL ELSE CURRENT_DATE END",
        "'2020-01-01'::timestamp",
    ],
)
def test_expressions_without_columns_are_constant(text: str) -> None:
    assert constants.is_constant(text)


@pytest.mark.parametrize(
    "text",
    ["a", '"a"', "1 + t.a", "(SELECT 1)", "random()", "sum(1)", "CAST(a AS INT)", "upper(a)"],
)
def test_others_are_not(text: str) -> None:
    assert not constants.is_constant(text)

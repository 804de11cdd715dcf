"""0.0 and -0.0 are one number, and NaN and infinities are numbers."""

from typing import Any

import pytest

from tests.engine.known_faults.memory import Asked

# In `floats`, the values of f with id 6 and 7 are -0.0 and 0.0.
LISTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("0, 5, 6, 7", {}),
    ("0.0, 5, 6, 7", {}),
    ("-0.0, 5, 6, 7", {}),
    ("0.0, 5", {}),
    ("-0.0, 5", {}),
    ("0", {}),
    ("'0', '5', '6', '7'", {}),
    ("'-0.0', '5', '6', '7'", {}),
    ("'-0', '5'", {}),
    ("$a, $b, 6, 7", {"a": 0.0, "b": 5.0}),
    ("$a, $b, 6, 7", {"a": -0.0, "b": 5.0}),
    ("$a, $b, 6, 7", {"a": 0, "b": 5}),
    ("id - id, 5, 6, 7", {}),
    ("f * -1, 5, 6, 7", {}),
    ("5, 6, 7, (0.0)", {}),
)


@pytest.mark.parametrize(("values", "parameters"), LISTS)
def test_zeros_of_both_signs_are_in_a_list(
    asked: Asked, values: str, parameters: dict[str, Any]
) -> None:
    sql = f"SELECT id FROM floats WHERE g = 3 AND f IN ({values})"
    negated = f"SELECT id FROM floats WHERE g = 3 AND f NOT IN ({values})"

    assert asked.mended(sql, parameters) == [(6,), (7,)]
    assert asked.mended(negated, parameters) == []


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("f <> -0.0 AND f = 0.0", []),
        ("NOT (f = -0.0) AND f = 0.0", []),
        ("NOT (f = 0.0) AND -0.0 = f", []),
        ("f = 0.0 AND f = -0.0", [6, 7]),
        ("f = (-0.0) AND f >= -(0.0) AND f <= -0.0", [6, 7]),
        ("f = -0 OR f = -0.0e0", [6, 7]),
        ("f > -1.0 AND f < -0.0", []),
    ],
)
def test_a_constant_of_either_sign_is_one_number(
    asked: Asked, condition: str, ids: list[int]
) -> None:
    found = asked.mended(f"SELECT id FROM floats WHERE {condition} ORDER BY id", {})
    assert found == [(each,) for each in ids]


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT y FROM texts WHERE y IN ('0', 'c', 'd', 'e')", {}),
        ("SELECT id FROM big WHERE id IN (0, 1, 5, 6)", {}),
        ("SELECT id FROM floats WHERE f IN (1, 2, 5, 6)", {}),
        ("SELECT k FROM t WHERE k IN ($a, $b, 8, 9)", {"a": 0, "b": 2}),
        ("SELECT id FROM floats WHERE id IN ('0', '1', '2', '30')", {}),
    ],
)
def test_other_lists_are_left_alone(asked: Asked, sql: str, parameters: dict[str, Any]) -> None:
    assert asked.text(sql, parameters) == sql
    assert asked.mended(sql, parameters) == asked.engine(sql, parameters)


def test_a_list_with_a_text_that_is_no_number_is_an_error(asked: Asked) -> None:
    with pytest.raises(Exception, match="'x'"):
        asked.mended("SELECT id FROM floats WHERE f IN ('x', '0', '6', '7')")


EXTREMES = {
    "SELECT g, min(f), max(f) FROM floats WHERE g < 3 GROUP BY g": "[(1, 1.0, nan), (2, 1.0, nan)]",
    "SELECT g, min(DISTINCT f), max(DISTINCT i) FROM floats WHERE g < 3 GROUP BY g": "[(1, 1.0, "
    "inf), (2, 1.0, nan)]",
    "SELECT g, min(f) FILTER (WHERE id = 4) FROM floats GROUP BY g": "[(1, None), (2, nan), "
    "(3, None)]",
    "SELECT g FROM floats GROUP BY g HAVING min(f) = 1": "[(1,), (2,)]",
    "SELECT g, MAX(i) AS i FROM floats GROUP BY 1": "[(1, inf), (2, nan), (3, 6.0)]",
}


@pytest.mark.parametrize("sql", EXTREMES)
def test_extremes_of_groups_know_nan_and_infinities(asked: Asked, sql: str) -> None:
    assert str(asked.mended(sql)) == EXTREMES[sql]


def test_a_moving_sum_forgets_what_left_its_frame(asked: Asked) -> None:
    found = asked.mended(
        "SELECT id, sum(i) FILTER (WHERE id <> 5) OVER w, avg(f) OVER w FROM floats "
        "WINDOW w AS (ORDER BY id ROWS 1 PRECEDING)"
    )

    assert str([row[1] for row in found]) == "[1.0, inf, inf, 5.0, 7.0, 4.0, 5.0, 11.0]"
    assert str([row[2] for row in found]) == "[nan, nan, 1.5, 1.5, nan, nan, 1.0, 0.0]"

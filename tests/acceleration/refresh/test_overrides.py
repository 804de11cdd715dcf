"""The body of a refresh request."""

import pytest

from caraway_acceleration.recipes.statements import RefreshSql
from caraway_acceleration.refresh import overrides
from caraway_acceleration.refresh.overrides import RefreshOverrides
from caraway_core.ids import TableName

ORDERS = TableName("orders")


def test_null_counts_as_absent_and_unknown_fields_are_ignored() -> None:
    nulls = {"refresh_sql": None, "refresh_mode": None, "refresh_jitter_max": None, "other": 1}
    assert overrides.read({}, ORDERS) == overrides.read(nulls, ORDERS) == RefreshOverrides()


def test_every_field_is_read() -> None:
    body = {
        "refresh_sql": "SELECT id FROM orders",
        "refresh_mode": "Append",
        "refresh_jitter_max": "1m30s",
    }
    read = overrides.read(body, ORDERS)
    assert read == RefreshOverrides(RefreshSql("SELECT id FROM orders", True), "append", 90)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"refresh_sql": 1}, "refresh_sql must be a string"),
        ({"refresh_sql": "SELECT * FROM other"}, "refresh_sql of 'orders' reads 'other'"),
        ({"refresh_mode": "changes"}, "'changes' loads nothing; use full or append"),
        ({"refresh_mode": "disabled"}, "'disabled' loads nothing"),
        ({"refresh_mode": "fast"}, "'fast' is unknown; use full or append"),
        ({"refresh_mode": 3}, "'3' is unknown"),
        ({"refresh_jitter_max": "soon"}, "refresh_jitter_max: 'soon' is not a duration"),
        ({"refresh_jitter_max": "-5s"}, "refresh_jitter_max: '-5s' is not a duration"),
    ],
)
def test_a_bad_field_is_named(body: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        overrides.read(body, ORDERS)

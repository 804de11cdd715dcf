"""The lower of two time limits applies, and the remedy is for that one."""

import pytest

from caraway_scheduler.queries.time_limits import TimeLimits

OWN, OTHER = "runtime.query.timeout", "sql_query_timeout_secs"


@pytest.mark.parametrize(
    ("own_s", "bound_s", "effective_s", "remedy"),
    [
        (None, None, None, OWN),
        (5.0, None, 5.0, OWN),
        (None, 5.0, 5.0, OTHER),
        (5.0, 7.0, 5.0, OWN),
        (7.0, 5.0, 5.0, OTHER),
        (5.0, 5.0, 5.0, OWN),
        (0.0, 5.0, 0.0, OWN),
    ],
)
def test_the_lower_limit_applies(
    own_s: float | None, bound_s: float | None, effective_s: float | None, remedy: str
) -> None:
    limits = TimeLimits(own_s, bound_s)
    assert limits.effective_s == effective_s
    assert remedy in limits.remedy

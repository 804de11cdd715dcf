import pytest

from caraway_scheduler.catalog import polling


@pytest.mark.parametrize(
    ("usual_s", "took_s", "period_s"),
    [
        (1.0, 0.0, 1.0),
        (1.0, 0.02, 1.0),
        (1.0, 0.1, 5.0),
        (1.0, 13.0, 30.0),
        (30.0, 0.0, 30.0),
        (30.0, 120.0, 30.0),
    ],
)
def test_a_source_that_takes_long_is_asked_less_often(
    usual_s: float, took_s: float, period_s: float
) -> None:
    assert polling.period_s(usual_s, took_s) == pytest.approx(period_s)

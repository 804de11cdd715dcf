import pytest

from caraway_scheduler.catalog import polling


@pytest.mark.parametrize(
    ("connector", "took_s", "period_s"),
    [
        ("file", 0.0, 1.0),
        ("file", 0.02, 1.0),
        ("file", 0.1, 5.0),
        ("file", 13.0, 30.0),
        ("s3", 0.0, 30.0),
        ("s3", 120.0, 30.0),
    ],
)
def test_a_source_that_takes_long_is_asked_less_often(
    connector: str, took_s: float, period_s: float
) -> None:
    assert polling.period_s(connector, took_s) == pytest.approx(period_s)

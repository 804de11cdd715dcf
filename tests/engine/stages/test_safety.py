import pytest

from tests.engine.stages.planning import objection

SAFE = (
    "SELECT id FROM facts WHERE word LIKE 'a%' AND day > DATE '2020-01-01'",
    "SELECT dim, sum(price) OVER (PARTITION BY dim ORDER BY id) FROM facts",
    "SELECT dim, sum(price) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM facts",
    "SELECT id FROM facts WHERE NOT EXISTS (SELECT 1 FROM more WHERE more.id = facts.id)",
    "SELECT id FROM facts WHERE dim IN (SELECT dim FROM dims)",
)
UNSAFE = {
    "NULLs in NOT IN": "SELECT id FROM facts WHERE dim NOT IN (SELECT dim FROM more)",
    "frames with a RANGE offset": "SELECT sum(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND "
    "CURRENT ROW) FROM facts",
    "NULLs that are skipped": "SELECT lag(dim) IGNORE NULLS OVER (ORDER BY id) FROM facts",
    "what differs each time": "SELECT random() FROM facts",
    "ordered aggregates": "SELECT first_value(id ORDER BY day) FROM facts",
    "rows without an order": "SELECT array_agg(id) FROM facts",
    "grouping sets": "SELECT dim, sum(id) FROM facts GROUP BY ROLLUP (dim)",
    "rows in the statement": "SELECT * FROM (VALUES (1), (2)) AS v (a) JOIN facts ON id = a",
}


@pytest.mark.parametrize("sql", SAFE)
def test_what_is_proven_may_be_distributed(sql: str) -> None:
    assert objection(sql) is None


@pytest.mark.parametrize("sql", UNSAFE.values(), ids=UNSAFE.keys())
def test_what_the_plan_language_loses_is_run_whole(sql: str) -> None:
    assert objection(sql) is not None

"""Joins by lists and structs lose no rows with NULL in them, and do not fail."""

from collections.abc import Iterator

import pytest

from caraway_core.errors import QueryError
from tests.differential import asking, cluster_runners, judging, runners
from tests.differential.asking import Runner
from tests.differential.datasets import Dataset
from tests.differential.judging import Judge
from tests.kit.clusters import EAGER

RUNNERS = {
    "one-node": runners.single_node,
    "early": runners.early,
    "two-by-hash": cluster_runners.in_process(2, EAGER),
}
KEYS = ("{}.e", "{}.g", "[{}.i, {}.l]", "[{}.t]", "[{}.v]", "{{x: {}.i, y: [{}.d]}}", "{}.i")
SHAPES = (
    "SELECT a.l, b.l FROM a JOIN b ON {ours} = {theirs}",
    "SELECT a.l, b.l FROM a LEFT JOIN b ON {ours} = {theirs} AND a.i = b.i",
    "SELECT a.l, b.l FROM a FULL JOIN b ON {ours} IS NOT DISTINCT FROM {theirs}",
    "SELECT a.l, b.l FROM a JOIN b ON {ours} IS NOT DISTINCT FROM {theirs} WHERE b.i > 0",
    "SELECT l FROM a WHERE {ours} IN (SELECT {theirs} FROM b WHERE p)",
    "SELECT l FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {ours} = {theirs})",
    "SELECT {ours} AS k FROM a INTERSECT SELECT {theirs} FROM b",
    "SELECT {ours} AS k FROM a EXCEPT ALL SELECT {theirs} FROM b",
    "SELECT a.l, count(*) AS n FROM a JOIN b ON {ours} = {theirs} JOIN c ON a.g = c.g GROUP BY a.l",
)


@pytest.fixture(scope="module", params=RUNNERS)
def runner(request: pytest.FixtureRequest, typed: Dataset) -> Iterator[Runner]:
    with asking.opened(RUNNERS[request.param], typed) as opened:
        yield opened


@pytest.mark.parametrize("shape", SHAPES)
def test_joins_by_every_key(runner: Runner, typed_judge: Judge, shape: str) -> None:
    # The engine sees no outer columns within brackets.
    for key in KEYS if "NOT EXISTS" not in shape else ("{}.e", "{}.g"):
        ours, theirs = (
            key.replace("{}", name).replace("{{", "{").replace("}}", "}") for name in "ab"
        )
        sql = shape.replace("{ours}", ours).replace("{theirs}", theirs)
        answer = runner.outcome(sql)
        assert not isinstance(answer, QueryError), f"{answer.message}\n{sql}"
        assert judging.counted(answer) == typed_judge.rows(sql), sql

"""The HTTP runner passes on answers of the runtime, including types and errors."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, QueryForbiddenError
from tests.differential import asking, http_runner
from tests.differential.asking import Pair, Runner
from tests.differential.datasets import Dataset


@pytest.fixture(scope="module")
def pair(small: Dataset, small_reference: Runner) -> Iterator[Pair]:
    with asking.opened(http_runner.standalone, small) as runner:
        yield Pair(small_reference, runner)


@pytest.mark.parametrize(
    "table", ["emp", "numbers", "moments", "texts", "nested", "floats", "odd_names", "nothing"]
)
def test_every_type_arrives_whole(table: str, pair: Pair) -> None:
    pair.check(f"SELECT * FROM {table}")


def test_text_is_plain_and_other_types_are_kept(pair: Pair) -> None:
    answer = pair.runner.outcome("SELECT name, salary FROM emp")
    assert isinstance(answer, pa.Table)
    assert answer.schema.types == [pa.string(), pa.decimal128(10, 2)]


def test_errors_are_of_the_class_that_one_node_raises(pair: Pair) -> None:
    for sql, error in (("SELECT nope FROM emp", InvalidQueryError),
                       ("SELECT id / 0 FROM emp", InvalidQueryError),
                       ("INSERT INTO l VALUES (1, 'a', 2)", QueryForbiddenError)):  # fmt: skip
        assert type(pair.runner.outcome(sql)) is error
        pair.check(sql)


def test_views_are_there(pair: Pair) -> None:
    pair.check("SELECT * FROM v_named")


@pytest.mark.parametrize("sql", [
    "SELECT CASE WHEN v > 50 THEN k ELSE 1.5 END AS c FROM l",
    "SELECT i8 AS x FROM numbers UNION ALL SELECT f64 FROM numbers",
])  # fmt: skip
def test_types_that_are_widened_are_announced_so(sql: str, pair: Pair) -> None:
    pair.check(sql)

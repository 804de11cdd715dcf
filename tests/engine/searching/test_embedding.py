"""The SQL function `embed` in a session."""

from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.errors import (
    ExecutionError,
    InvalidQueryError,
    ModelAwayError,
    ModelError,
    ModelInputError,
    ModelNotReadyError,
    NotFoundError,
)
from caraway_engine.errors import failing
from caraway_engine.searching import embedding
from tests.kit.embedders import FakeEmbedder, FakeModels


def context(models: FakeModels | None) -> SessionContext:
    made = SessionContext()
    embedding.register(made, models)
    return made


def firsts(made: SessionContext, sql: str) -> list[Any]:
    return [row["v"] and row["v"][0] for row in made.sql(sql).to_pylist()]


def test_each_text_has_its_vector() -> None:
    model = FakeEmbedder()
    made = context(FakeModels(m=model))
    made.from_pydict({"t": ["a", None, "abc", "", " \n", "a"]}, "t")
    assert firsts(made, "SELECT embed(t, 'm') AS v FROM t") == [1.0, None, 3.0, None, None, 1.0]
    # Equal texts are embedded once.
    assert model.calls == [["a", "abc"]]
    assert made.sql("SELECT embed(t, 'm') AS v FROM t").schema().field("v").type == pa.list_(
        pa.float32()
    )
    assert firsts(made, "SELECT embed(t, 'm') AS v FROM t WHERE t IS NULL") == [None]
    assert firsts(made, "SELECT embed(t, NULL) AS v FROM t LIMIT 1") == [None]
    assert firsts(made, "SELECT embed(t, 'm') AS v FROM t WHERE t = 'x'") == []


def test_the_model_may_differ_by_row() -> None:
    models = FakeModels(m=FakeEmbedder(), n=FakeEmbedder(dimensions=3))
    made = context(models)
    made.from_pydict({"t": ["a", "ab", "abc"], "m": ["m", None, "n"]}, "t")
    rows = made.sql("SELECT embed(t, m) AS v FROM t").to_pylist()
    assert [row["v"] for row in rows] == [[1.0, 1.0], None, [3.0, 1.0, 0.0]]


def test_lists_of_texts() -> None:
    model = FakeEmbedder()
    made = context(FakeModels(m=model))
    lists = pa.array([["a", "abc"], [], None, ["ab", None]], pa.list_(pa.string()))
    made.from_arrow(pa.table({"t": lists}), "t")
    rows = made.sql("SELECT embed_array(t, 'm') AS v FROM t").to_pylist()
    assert [row["v"] for row in rows] == [
        [[1.0, 1.0], [3.0, 1.0]],
        [],
        None,
        [[2.0, 1.0], None],
    ]


def test_many_texts_are_embedded_in_parts() -> None:
    model = FakeEmbedder()
    made = context(FakeModels(m=model))
    made.from_pydict({"t": [str(index) for index in range(1000)]}, "t")
    assert len(firsts(made, "SELECT embed(t, 'm') AS v FROM t")) == 1000
    assert max(map(len, model.calls)) <= 256


def test_planning_calls_no_model() -> None:
    made = context(None)
    made.from_pydict({"t": ["a"]}, "t")
    for sql in ("SELECT embed('a', 'm') AS v", "SELECT * FROM t WHERE embed(t, 'm')[1] > 1"):
        made.sql(sql).optimized_logical_plan()
        made.sql(sql).execution_plan()
    with pytest.raises(Exception, match="caraway-remote-") as caught:
        made.sql("SELECT embed('a', 'm') AS v").collect()
    found = failing.found(str(caught.value))
    assert found is not None and "only plans" in found.message


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def vectors(self, model: str, texts: object, mark: str = "") -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NotFoundError("no such"), InvalidQueryError),
        (ModelInputError("too long"), InvalidQueryError),
        (ModelAwayError("away", retry_after_s=9), ModelNotReadyError),
        (ModelError("broken"), ExecutionError),
    ],
)
def test_failures_of_models_are_those_of_the_statement(
    error: Exception, expected: type[Exception]
) -> None:
    made = SessionContext()
    embedding.register(made, Failing(error))
    with pytest.raises(Exception, match="caraway-remote-") as caught:
        made.sql("SELECT embed('a', 'm') AS v").collect()
    found = failing.found(str(caught.value))
    assert type(found) is expected
    assert found.message == str(error)
    if isinstance(found, ModelNotReadyError):
        assert found.retry_after_s == 9

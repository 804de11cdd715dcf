"""Lists of texts are embedded text by text, wherever the result is read."""

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_engine import known_faults
from caraway_engine.searching import embedding
from tests.kit.embedders import FakeEmbedder, FakeModels

SHAPES = [
    ("embed(['a', 'abc'], 'm')", [[1.0, 1.0], [3.0, 1.0]]),
    ("embed(['a', 'abc'], 'm')[2]", [3.0, 1.0]),
    ("embed(['a', 'abc'], 'm')[2][1]", 3.0),
    ("array_length(embed(texts, 'm')[1])", 2),
    ("array_distance(embed(texts, 'm')[1], embed('a', 'm'))", 1.0),
    ("(SELECT array_length(x[1]) FROM (SELECT embed(['a'], 'm') AS x))", 2),
    ("embed('a', 'm')[1]", 1.0),
]


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext()
    embedding.register(made, FakeModels(m=FakeEmbedder()))
    made.register_record_batches("t", [pa.table({"texts": [["ab"]]}).to_batches()])
    return made


@pytest.mark.parametrize(("expression", "value"), SHAPES)
def test_a_list_has_a_vector_for_each_text(
    context: SessionContext, expression: str, value: object
) -> None:
    made = known_faults.planned(context, f"SELECT {expression} AS v FROM t", context.sql)
    assert made.dataframe.to_pylist() == [{"v": value}]


@pytest.mark.parametrize("wrong", ["embed(['a'], 'm')[1][1][1]", "nothing(embed('a', 'm'))"])
def test_what_cannot_be_planned_fails_as_before(context: SessionContext, wrong: str) -> None:
    with pytest.raises(Exception, match=r"array_element|nothing"):
        known_faults.planned(context, f"SELECT {wrong} FROM t", context.sql)

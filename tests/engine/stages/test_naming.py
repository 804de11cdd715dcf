import re
from collections import Counter

import pyarrow as pa
import pytest

from caraway_engine.stages import naming
from caraway_engine.stages.inputs import INPUT_PREFIX
from caraway_engine.stages.stage_schemas import StageSchemas
from tests.engine.stages.planner_statements import STATEMENTS
from tests.engine.stages.planning import LARGE, MB, Planned, context, planned

SELF_JOINS = (
    "SELECT a.id, b.word FROM facts a RIGHT JOIN facts b ON a.id = b.other "
    "WHERE upper(a.word) > ''",
    "SELECT a.dim, b.dim, c.dim FROM dims a LEFT JOIN dims b ON a.dim = b.dim "
    "FULL JOIN dims c ON c.dim = b.dim WHERE lower(a.label) > lower(coalesce(b.label, ''))",
    "SELECT a.label, b.label FROM dims a, dims b, facts f "
    "WHERE a.dim = f.dim AND b.dim = f.other AND upper(concat(a.label, b.label)) > 'A'",
    "SELECT count(*) FROM dims d WHERE EXISTS (SELECT 1 FROM dims e WHERE e.dim = d.dim "
    "AND e.label <> d.label) AND NOT EXISTS (SELECT 1 FROM dims e WHERE e.dim = d.dim + 1)",
    "SELECT d.label FROM dims d WHERE d.dim IN (SELECT dim FROM dims WHERE label > 'a') "
    "OR EXISTS (SELECT 1 FROM dims e WHERE e.dim = d.dim * 2) "
    "OR EXISTS (SELECT 1 FROM dims e WHERE e.dim = d.dim * 3)",
    "SELECT a.n, b.n FROM (SELECT dim, count(*) n FROM dims GROUP BY dim) a "
    "RIGHT JOIN (SELECT dim, count(*) n FROM dims GROUP BY dim) b ON a.dim = b.dim "
    "WHERE coalesce(a.n, 0) = 0",
    "SELECT a.n, b.n FROM (SELECT 1 AS n, dim FROM facts) a "
    "LEFT JOIN (SELECT 1 AS n, id FROM more) b ON a.dim = b.id WHERE b.n IS NULL",
    "SELECT * FROM (SELECT dim, label FROM dims UNION ALL SELECT id, word FROM facts) a "
    "LEFT JOIN (SELECT dim, label FROM dims UNION ALL SELECT id, word FROM facts) b "
    "ON a.dim = b.dim WHERE b.label IS NULL",
    "WITH t AS (SELECT dim, sum(id) s, count(*) n FROM facts GROUP BY dim) "
    "SELECT * FROM t a FULL JOIN t b ON a.dim = b.dim AND a.s < b.s WHERE coalesce(a.n, b.n) > 1",
    "SELECT a.dim, b.r FROM dims a LEFT JOIN (SELECT dim, row_number() OVER (ORDER BY dim) r "
    "FROM dims) b ON a.dim = b.dim LEFT JOIN (SELECT dim, row_number() OVER (ORDER BY dim) r "
    "FROM dims) c ON c.dim = b.dim WHERE c.r IS NULL",
)  # fmt: skip
COLUMN = re.compile(r"(.+?):[A-Z]\w*(?:\([^)]*\))?(?:;N)?(?:, |$)")


def shared_names(made: Planned) -> list[str]:
    """Return the relations of a statement's fragments in which columns have the same bare name."""
    found = []
    for stage in made.stages:
        frame = made.schemas._planned(stage.plan)
        for plan in (frame.logical_plan(), frame.optimized_logical_plan()):
            for line in plan.display_indent_schema().splitlines():
                relation, _, columns = line.rpartition(" [")
                names = [each[1] for each in COLUMN.finditer(columns.removesuffix("]"))]
                if max(Counter(names).values(), default=0) > 1:
                    found.append(relation)
    return found


@pytest.mark.parametrize("sql", [*STATEMENTS, *SELF_JOINS])
@pytest.mark.parametrize("size", [1000, 50 * MB, 10 * LARGE], ids=["small", "middle", "large"])
def test_no_two_columns_of_a_relation_have_the_same_name(sql: str, size: int) -> None:
    assert shared_names(planned(sql, lambda _stage: size)) == []


def test_columns_of_exchanges_are_named_after_their_stage() -> None:
    made = planned("SELECT f.id, amount FROM facts f FULL JOIN more m ON f.id = m.id")

    assert [reading.schema.names for reading in made.root.readings] == [
        [f"{reading.stage}_c{index}" for index in range(len(reading.schema))]
        for reading in made.root.readings
    ]
    names = [name for stage in made.stages for name in stage.schema.names]
    assert len(names) == len(set(names))


def test_only_names_that_meet_another_are_changed() -> None:
    made = planned("SELECT f.id, label FROM facts f LEFT JOIN dims d ON f.dim = d.dim")

    (line,) = [line for line in _text(made).splitlines() if "CASE" in line and "Join" not in line]
    assert line.split() == (
        "Projection: CASE WHEN Int64(1) IS NOT NULL THEN dims.dim END, dims.label".split()
    )


def test_a_column_called_like_one_of_an_exchange_is_told_apart_from_it() -> None:
    made = planned("SELECT m.s1_c0, f.id FROM facts f RIGHT JOIN odd m ON f.id = m.id")

    assert shared_names(made) == []
    assert re.search(r"CASE WHEN Int64\(1\) IS NOT NULL THEN \S+s1_c0 END", _text(made))


def test_the_engine_leaves_nothing_of_a_changed_name_but_the_name() -> None:
    made = planned("SELECT f.id, label FROM facts f LEFT JOIN dims d ON f.dim = d.dim")

    optimized = str(made.schemas._planned(made.root.plan).optimized_logical_plan().display_indent())
    assert "dims.dim AS CASE WHEN Int64(1) IS NOT NULL THEN dims.dim END" in optimized


def test_texts_for_readers_show_columns_by_the_names_that_they_know() -> None:
    made = planned(
        "SELECT a.id, b.label, upper(c.label) FROM facts a LEFT JOIN dims b ON a.dim = b.dim "
        "FULL JOIN dims c ON c.dim = a.other", lambda _stage: 10 * LARGE,
    )  # fmt: skip

    texts = [made.schemas.text(stage.plan) for stage in made.stages]
    assert not any("CASE" in text or "_c0" in text for text in texts)
    assert any("Left Join: facts.dim = dims.dim" in text for text in texts)


def test_a_struct_takes_the_names_of_its_fields_from_the_list_of_names() -> None:
    schema = pa.schema(
        {
            "s": pa.struct({"x": pa.int64(), "y": pa.list_(pa.struct({"z": pa.int64()}))}),
            "k": pa.int64(),
        }
    )
    made = StageSchemas(*context())

    read = made.leaf(f"{INPUT_PREFIX}s1", schema)

    assert naming.names(read) == [frozenset({"s"}), frozenset({"k"})]
    assert list(read.read.base_schema.names) == ["s", "x", "y", "z", "k"]


def _text(made: Planned) -> str:
    return str(made.schemas._planned(made.root.plan).logical_plan().display_indent())

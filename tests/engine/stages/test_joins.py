"""Reading of joins: their keys, their sides, and other forms of their conditions."""

import pyarrow as pa
import pytest
from substrait.algebra_pb2 import Expression, Rel

from caraway_engine.stages import joins, rewriting
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.joins import Key
from caraway_engine.stages.relations import (
    children,
    join_type,
    kind,
    origins,
    reference,
    table_name,
    walk,
    width,
)
from caraway_engine.stages.stage_schemas import StageSchemas
from tests.engine.stages.planning import context, substrait

FROM = "FROM facts f JOIN more m ON "


def planned(sql: str) -> tuple[Rel, Functions]:
    plan, _ = substrait(context()[0], sql)
    return plan.relations[0].root.input, Functions(plan)


def join_of(sql: str) -> tuple[Rel, Functions]:
    rel, functions = planned(sql)
    return next(each for each in walk(rel) if kind(each) in ("join", "cross")), functions


def keys(sql: str) -> list[tuple[int | None, int | None, str]]:
    rel, functions = join_of(sql)
    found = joins.keys(rel, width(children(rel)[0]), functions)
    return [(*key.columns, key.equality) for key in found]


@pytest.mark.parametrize(
    ("condition", "count", "equalities"),
    [
        ("f.id = m.id", 1, {"equal"}),
        ("m.id = f.id", 1, {"equal"}),
        ("f.id = m.id AND f.dim = m.dim", 2, {"equal"}),
        ("f.id = m.id AND f.dim < m.dim", 1, {"equal"}),
        ("(f.id IS NOT DISTINCT FROM m.id)", 1, {"is_not_distinct_from"}),
        ("f.id + 1 = m.id * 2", 1, {"equal"}),
        ("f.id + f.dim = m.id", 1, {"equal"}),
        ("f.id + m.dim = 7", 0, set()),
        ("f.id = m.id + f.dim", 0, set()),
        ("f.id < m.id", 0, set()),
        ("f.id <> m.id", 0, set()),
        ("(f.id = m.id OR f.dim = m.dim)", 0, set()),
        ("f.id = f.dim AND m.id > f.other", 0, set()),
    ],
)
def test_keys_are_the_equalities_between_both_sides(
    condition: str, count: int, equalities: set[str]
) -> None:
    found = keys(f"SELECT f.word, m.amount {FROM}{condition} AND f.weight > m.amount")
    assert len(found) == count
    assert {equality for *_, equality in found} == equalities


def test_the_right_key_counts_from_its_own_side() -> None:
    rel, functions = join_of(f"SELECT * {FROM}f.dim = m.id")
    left, right = children(rel)
    (key,) = joins.keys(rel, width(left), functions)
    schemas = StageSchemas(*context())
    names = [table_name(side) for side in (left, right)]
    assert names == ["facts", "more"]
    assert key.columns == (1, 0)
    assert schemas.schema(functions.plan(right)).types[0] == pa.int64()
    assert joins.moved(key.right, width(left)) == reference(width(left))


def test_without_a_condition_there_are_no_keys() -> None:
    rel, functions = join_of("SELECT f.id, m.dim FROM facts f CROSS JOIN more m")
    assert joins.keys(rel, 1, functions) == ()
    assert joins.count_conditions(rel, functions) == 0
    assert joins.equalities(rel, functions) == []


def key(left: int | None, right: int | None) -> Key:
    functions = planned("SELECT 1")[1]
    computed = functions.call("add", reference(0), reference(1))
    sides = [computed if each is None else reference(each) for each in (left, right)]
    return Key(sides[0], sides[1], "equal")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)]),
        ([(0, 0), (0, 1)], [(0, 0)]),
        ([(0, 0), (1, 0)], [(0, 0)]),
        ([(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 1)]),
        ([(None, 0), (None, 1)], [(None, 0), (None, 1)]),
        ([(None, None), (None, None)], [(None, None), (None, None)]),
        ([], []),
    ],
)
def test_a_column_parts_rows_once(
    given: list[tuple[int | None, int | None]], kept: list[tuple[int | None, int | None]]
) -> None:
    assert [each.columns for each in joins.distinct([key(*pair) for pair in given])] == kept


@pytest.mark.parametrize(
    ("type_", "left", "right"),
    [
        ("INNER", True, True), ("LEFT", True, False), ("RIGHT", False, True),
        ("OUTER", False, False), ("LEFT_SEMI", True, False), ("LEFT_ANTI", True, False),
        ("RIGHT_SEMI", False, True), ("RIGHT_ANTI", False, True), ("LEFT_MARK", True, False),
        ("RIGHT_MARK", False, True), ("LEFT_SINGLE", False, False),
    ],
)  # fmt: skip
def test_the_side_whose_rows_must_come_once_is_the_spread_one(
    type_: str, left: bool, right: bool
) -> None:
    rel = Rel()
    rel.join.type = getattr(rel.join, f"JOIN_TYPE_{type_}")
    assert joins.spreads(rel) == (left, right)
    assert (type_ in joins.KNOWN) is (type_ != "LEFT_SINGLE")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_conjunction_is_taken_apart_as_it_was_put_together(count: int) -> None:
    _, functions = planned("SELECT 1")
    conditions = [functions.call("gt", reference(n), reference(n + 1)) for n in range(count)]
    made = joins.conjunction(conditions, functions)
    assert list(joins.conjuncts(made, functions)) == conditions


def test_moving_columns_leaves_the_expression_alone() -> None:
    _, functions = planned("SELECT 1")
    expression = functions.call("add", reference(1), functions.call("not", reference(2)))
    before = expression.SerializeToString()
    moved = joins.moved(expression, 10)
    assert expression.SerializeToString() == before
    assert moved == functions.call("add", reference(11), functions.call("not", reference(12)))


def test_equal_columns_of_one_side_are_told_from_a_pair() -> None:
    _, functions = planned("SELECT 1")

    def is_own(name: str, *columns: int | None) -> bool:
        sides = [reference(n) if n is not None else Expression() for n in columns]
        return joins.is_own_equality(functions.call(name, *sides), 2, functions)

    assert is_own("equal", 0, 1) and is_own("equal", 2, 3) and is_own("is_not_distinct_from", 0, 0)
    assert not is_own("equal", 1, 2) and not is_own("lt", 0, 1) and not is_own("equal", 0, None)
    assert not joins.is_own_equality(reference(0), 2, functions)


def test_own_equalities_are_said_in_other_words() -> None:
    rel, functions = join_of(f"SELECT f.word {FROM}f.id = m.id")
    left = width(children(rel)[0])
    changed = Rel()
    changed.CopyFrom(rel)
    own = [functions.call("equal", reference(0), reference(0)),
           functions.call("is_not_distinct_from", reference(left), reference(left))]  # fmt: skip
    changed.join.expression.CopyFrom(joins.conjunction([rel.join.expression, *own], functions))
    made = rewriting.reword_own_equalities(changed, functions)
    names = []
    for each in joins.conjuncts(made.join.expression, functions):
        call = each.scalar_function
        name = functions.name(call.function_reference)
        if name == "not":
            inner = call.arguments[0].value.scalar_function
            name += " " + functions.name(inner.function_reference)
        names.append(name)
    assert names == ["equal", "not not_equal", "not is_distinct_from"]
    assert rewriting.reword_own_equalities(rel, functions) == rel


SEMI = (
    "SELECT f.id FROM facts f JOIN more m ON f.dim = m.dim "
    "WHERE f.other IN (SELECT dim FROM dims WHERE label > 'a')"
)


def shape(rel: Rel) -> str:
    if kind(rel) == "read":
        return str(table_name(rel))
    inner = ", ".join(map(shape, children(rel)))
    return f"{join_type(rel)}({inner})" if kind(rel) == "join" else inner


@pytest.mark.parametrize(
    ("sql", "before", "after"),
    [
        (SEMI, "LEFT_SEMI(INNER(facts, more), dims)", "INNER(LEFT_SEMI(facts, dims), more)"),
        ("SELECT f.id FROM facts f JOIN more m ON f.dim = m.dim "
         "WHERE m.id IN (SELECT dim FROM dims)",
         "LEFT_SEMI(INNER(facts, more), dims)", "INNER(facts, LEFT_SEMI(more, dims))"),
        ("SELECT f.id FROM facts f LEFT JOIN more m ON f.dim = m.dim "
         "WHERE f.other IN (SELECT dim FROM dims)",
         "LEFT_SEMI(LEFT(facts, more), dims)", "LEFT_SEMI(LEFT(facts, more), dims)"),
        ("SELECT f.id FROM facts f JOIN more m ON f.dim = m.dim "
         "WHERE f.other + m.id IN (SELECT dim FROM dims)",
         "LEFT_SEMI(INNER(facts, more), dims)", "LEFT_SEMI(INNER(facts, more), dims)"),
        ("SELECT id FROM facts WHERE dim IN (SELECT dim FROM dims)",
         "LEFT_SEMI(facts, dims)", "LEFT_SEMI(facts, dims)"),
        ("SELECT f.id FROM facts f JOIN more m ON f.dim = m.dim "
         "WHERE f.other NOT IN (SELECT dim FROM dims WHERE dim IS NOT NULL)",
         "LEFT_ANTI(INNER(facts, more), dims)", "LEFT_ANTI(INNER(facts, more), dims)"),
    ],
)  # fmt: skip
def test_a_semi_join_goes_to_the_rows_that_it_filters(sql: str, before: str, after: str) -> None:
    rel, functions = planned(sql)
    assert shape(rel) == before
    made = rewriting.lower_semi_joins(rel, functions)
    assert shape(made) == after
    assert width(made) == width(rel)


def test_a_pair_may_be_written_from_the_right_to_the_left() -> None:
    _, functions = planned("SELECT 1")
    rel = Rel()
    rel.join.expression.CopyFrom(functions.call("equal", reference(5), reference(1)))
    (found,) = joins.keys(rel, 3, functions)
    assert found.columns == (1, 2)


def test_a_semi_join_that_was_lowered_compares_the_same_columns() -> None:
    rel, functions = planned(
        "SELECT f.id FROM facts f JOIN more m ON f.dim = m.dim WHERE m.id IN (SELECT dim FROM dims)"
    )
    made = rewriting.lower_semi_joins(rel, functions)
    (semi,) = [each for each in walk(made) if kind(each) == "join" and join_type(each) != "INNER"]
    (found,) = joins.keys(semi, width(semi.join.left), functions)
    column = found.columns[0]
    assert column is not None
    read = semi.join.left
    while kind(read) != "read":
        below = origins(read)[column]
        assert below is not None
        column, read = below, children(read)[0]
    names = read.read.base_schema.names
    wanted = [each.field for each in read.read.projection.select.struct_items]
    assert names[wanted[column] if wanted else column] == "id"

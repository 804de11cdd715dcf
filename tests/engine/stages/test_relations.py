"""Relations of Substrait: their columns, their contents, and how they are built again."""

import pyarrow as pa
import pytest
from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_engine.stages import relations
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import kind, origins, reference, walk, width
from caraway_engine.stages.stage_schemas import StageSchemas
from tests.engine.stages.planner_statements import STATEMENTS
from tests.engine.stages.planning import context, substrait


def root(sql: str) -> tuple[Rel, Functions]:
    plan, _ = substrait(context()[0], sql)
    return plan.relations[0].root.input, Functions(plan)


def first(rel: Rel, wanted: str) -> Rel:
    return next(each for each in walk(rel) if kind(each) == wanted)


@pytest.fixture(scope="module")
def schemas() -> StageSchemas:
    return StageSchemas(*context())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_width_of_a_relation_is_what_the_engine_gives(sql: str, schemas: StageSchemas) -> None:
    rel, functions = root(sql)
    assert width(rel) == len(schemas.schema(functions.plan(rel)))
    for each in walk(rel):
        if kind(each) in ("filter", "project", "sort", "fetch"):
            assert len(origins(each)) == width(each)


@pytest.mark.parametrize(
    ("join", "count"),
    [
        ("INNER", 5), ("LEFT", 5), ("RIGHT", 5), ("OUTER", 5), ("LEFT_SEMI", 2), ("LEFT_ANTI", 2),
        ("RIGHT_SEMI", 3), ("RIGHT_ANTI", 3), ("LEFT_MARK", 3), ("RIGHT_MARK", 4),
    ],
)  # fmt: skip
def test_the_columns_of_a_join_follow_from_its_type(join: str, count: int) -> None:
    rel = Rel()
    for side, names in ((rel.join.left, "ab"), (rel.join.right, "xyz")):
        for _ in names:
            side.read.base_schema.struct.types.add()
    rel.join.type = getattr(rel.join, f"JOIN_TYPE_{join}")
    assert relations.join_type(rel) == join
    assert width(rel) == count
    rel.join.common.emit.output_mapping.extend([0])
    assert width(rel) == 1
    rel.join.common.emit.ClearField("output_mapping")
    assert width(rel) == 0, "rows without columns"


def test_a_cross_join_is_an_inner_one_without_a_condition() -> None:
    rel = Rel()
    rel.cross.left.read.base_schema.struct.types.add()
    rel.cross.right.read.base_schema.struct.types.add()
    assert (relations.join_type(rel), width(rel)) == ("INNER", 2)


@pytest.mark.parametrize("sql", STATEMENTS[:8])
def test_a_relation_of_its_own_children_is_itself(sql: str) -> None:
    for each in walk(root(sql)[0]):
        assert relations.with_children(each, relations.children(each)) == each


def test_a_copy_with_other_inputs_leaves_the_first_alone() -> None:
    rel, _ = root(
        "SELECT id FROM facts UNION ALL SELECT id FROM more UNION ALL SELECT dim FROM dims"
    )
    union = first(rel, "set")
    before = union.SerializeToString()
    turned = relations.with_children(union, relations.children(union)[::-1])
    assert [relations.table_name(each) for each in walk(turned) if kind(each) == "read"] == [
        "dims", "more", "facts",
    ]  # fmt: skip
    assert union.SerializeToString() == before


@pytest.mark.parametrize(
    ("expression", "field"),
    [(reference(0), 0), (reference(300), 300), (Expression(), None)],
)
def test_a_column_is_told_from_more_than_a_column(
    expression: Expression, field: int | None
) -> None:
    assert relations.field_of(expression) == field
    nested = reference(1)
    nested.selection.direct_reference.struct_field.child.struct_field.field = 2
    outer = Expression()
    outer.selection.outer_reference.steps_out = 1
    outer.selection.direct_reference.struct_field.field = 1
    element = Expression()
    element.selection.root_reference.SetInParent()
    element.selection.direct_reference.list_element.offset = 1
    assert [relations.field_of(each) for each in (nested, outer, element)] == [None] * 3


def test_fields_of_a_subquery_are_not_those_of_the_expression() -> None:
    rel, functions = root("SELECT id FROM facts WHERE id + dim > (SELECT max(other) FROM facts)")
    condition = first(rel, "filter").filter.condition
    assert sorted(each.field for each in relations.fields(condition)) == [0, 1]
    assert len(list(relations.subqueries(first(rel, "filter").filter))) == 1
    assert [kind(each) for each in walk(rel)].count("read") == 2
    two = functions.call("and", condition, condition)
    assert len(list(relations.subqueries(two))) == 2
    assert len(list(relations.fields(two))) == 4


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (["t"], "t"),
        (["public", "t"], "t"),
        (["caraway", "public", "t"], "t"),
        (["caraway", "sales", "t"], "sales.t"),
        (["sales", "t"], "sales.t"),
        (["public"], "public"),
        (["caraway"], "caraway"),
        (["caraway", "public", "public"], "public"),
        (["é.x", "t"], "é.x.t"),
    ],
)
def test_a_table_has_the_name_of_the_manifest(names: list[str], table: str) -> None:
    rel = Rel()
    rel.read.named_table.names.extend(names)
    assert relations.table_name(rel) == table


def test_origins_follow_columns_through_projections() -> None:
    rel, _ = root("SELECT dim, id + 1 AS n, id FROM facts")
    (project,) = [each for each in walk(rel) if kind(each) == "project"]
    inside = width(project.project.input)
    assert [None if each is None else each % inside for each in origins(project)].count(None) == 1
    plain = relations.project(project.project.input, [reference(1), reference(0)])
    assert origins(plain) == [1, 0]
    filtered = Rel()
    filtered.filter.input.CopyFrom(plain)
    assert origins(filtered) == [0, 1]


def test_projected_and_appended_columns_come_where_they_should(schemas: StageSchemas) -> None:
    rel, functions = root("SELECT id, word, weight FROM facts")
    chosen = relations.project(rel, [reference(2), reference(0), reference(2)])
    types = schemas.schema(functions.plan(chosen)).types
    assert types == [pa.float64(), pa.int64(), pa.float64()]
    appended = relations.append(rel, [reference(1)])
    types = schemas.schema(functions.plan(appended)).types
    assert types[0] == pa.int64() and types[1] == types[3] and len(types) == width(appended) == 4
    nothing = relations.project(rel, [])
    assert width(nothing) == 0


def declared(*names: str) -> Functions:
    plan = Plan()
    for anchor, name in enumerate(names):
        each = plan.extensions.add().extension_function
        each.function_anchor, each.name = anchor * 10, name
    return Functions(plan)


def test_functions_are_declared_once() -> None:
    functions = declared("and", "equal")
    assert (functions.name(10), functions.name(11)) == ("equal", "")
    assert functions.anchor("equal") == 10
    new = functions.anchor("not")
    assert new == 11 and functions.anchor("not") == new and functions.name(new) == "not"
    assert functions.names == {"and", "equal", "not"}
    assert declared().anchor("sum") == 0


def test_a_fragment_has_the_functions_that_it_calls() -> None:
    rel, functions = root("SELECT id FROM facts WHERE id > 1")
    call = functions.call("brand_new", reference(0), reference(1))
    plan = Plan()
    plan.ParseFromString(functions.plan(relations.project(rel, [call])))
    names = {e.extension_function.function_anchor: e.extension_function.name
             for e in plan.extensions}  # fmt: skip
    assert names[call.scalar_function.function_reference] == "brand_new"
    assert len(names) == len(plan.extensions)
    assert [each.value for each in call.scalar_function.arguments] == [reference(0), reference(1)]

"""Functions of a plan: each is declared once, under an anchor of its own."""

from hypothesis import given
from hypothesis import strategies as st
from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan
from substrait.type_pb2 import Type

from caraway_engine.stages.functions import Functions, cast

NAMES = st.lists(st.sampled_from(["and", "or", "sum", "equal", "like"]), max_size=12)


def declaring(anchors: dict[int, str]) -> Plan:
    plan = Plan()
    for anchor, name in anchors.items():
        declared = plan.extensions.add().extension_function
        declared.function_anchor, declared.name = anchor, name
    return plan


def declared(fragment: bytes) -> dict[int, str]:
    plan = Plan()
    plan.ParseFromString(fragment)
    found = [each.extension_function for each in plan.extensions]
    assert len({each.function_anchor for each in found}) == len(found)
    return {each.function_anchor: each.name for each in found}


@given(st.dictionaries(st.integers(0, 50), st.sampled_from(["avg", "and", "min"])), NAMES)
def test_anchors_are_stable_and_their_own(known: dict[int, str], asked: list[str]) -> None:
    functions = Functions(declaring(known))
    anchors = {name: functions.anchor(name) for name in asked}
    assert {name: functions.anchor(name) for name in asked} == anchors
    assert all(functions.name(anchor) == name for name, anchor in anchors.items())
    after = declared(functions.plan(Rel()))
    assert known.items() <= after.items(), "fragments keep the anchors of their plan"
    assert {name: anchor for anchor, name in after.items() if name in anchors}.keys() == set(asked)


def test_an_anchor_that_is_not_declared_has_no_name() -> None:
    assert Functions(Plan()).name(7) == ""
    assert Functions(Plan()).names == frozenset()


def test_calls_name_their_function_and_keep_their_arguments() -> None:
    functions = Functions(declaring({3: "or"}))
    one, two = Expression(), Expression()
    one.literal.i64, two.literal.boolean = 1, True
    call = functions.call("and", one, two).scalar_function
    assert call.function_reference == 4
    assert [each.value for each in call.arguments] == [one, two]


def test_casts_fail_instead_of_giving_null() -> None:
    value, type_ = Expression(), Type()
    value.literal.string = "x"
    type_.i64.nullability = Type.NULLABILITY_NULLABLE
    made = cast(value, type_).cast
    assert made.failure_behavior == Expression.Cast.FAILURE_BEHAVIOR_THROW_EXCEPTION
    assert (made.input, made.type) == (value, type_)

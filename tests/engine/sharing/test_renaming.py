"""Fragments that read shares where they read tables."""

import pytest
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_engine.sharing import renaming
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA
from caraway_engine.stages.relations import kind, walk
from tests.engine.stages.planning import context, substrait


def fragment(sql: str) -> bytes:
    plan, _ = substrait(context()[0], sql)
    return Functions(plan).plan(plan.relations[0].root.input)


def reads(serialized: bytes) -> list[tuple[str, ...]]:
    plan = Plan()
    plan.ParseFromString(serialized)
    return sorted(
        tuple(rel.read.named_table.names)
        for rel in walk(plan.relations[0].rel)
        if kind(rel) == "read"
    )


def names(**given: str) -> dict[TableName, str]:
    return {TableName(table): name for table, name in given.items()}


SHARE = (INPUT_SCHEMA, INPUT_PREFIX + "x")


@pytest.mark.parametrize(
    ("sql", "found", "left"),
    [
        ("SELECT id FROM facts", [SHARE], set()),
        ("SELECT a.id FROM facts a JOIN facts b ON a.id = b.dim", [SHARE, SHARE], set()),
        ("SELECT f.id FROM facts f JOIN dims d ON f.dim = d.dim", [("dims",), SHARE], {"dims"}),
        ("SELECT id FROM facts UNION ALL SELECT id FROM more", [SHARE, ("more",)], {"more"}),
        ("SELECT id FROM more WHERE id > (SELECT max(id) FROM facts)", [SHARE, ("more",)],
         {"more"}),
        ("SELECT id FROM more WHERE EXISTS (SELECT 1 FROM facts WHERE facts.id = more.id)",
         [SHARE, ("more",)], {"more"}),
        ("SELECT dim FROM dims", [("dims",)], {"dims"}),
    ],
)  # fmt: skip
def test_every_read_of_a_table_is_renamed(
    sql: str, found: list[tuple[str, ...]], left: set[str]
) -> None:
    made = renaming.renamed(fragment(sql), names(facts="x"))
    assert [
        each[-2:] if each[0] == INPUT_SCHEMA else each[-1:] for each in reads(made.fragment)
    ] == sorted(found)
    assert made.left == left
    assert made.read == ({"facts"} if SHARE in found else set())


def test_nothing_else_of_the_fragment_changes() -> None:
    before = fragment(
        "SELECT f.id, sum(d.dim) FROM facts f JOIN dims d ON f.dim = d.dim GROUP BY 1"
    )
    made = renaming.renamed(before, names(facts="x"))
    back = made.fragment
    plan = Plan()
    plan.ParseFromString(back)
    (renamed,) = [
        rel
        for rel in walk(plan.relations[0].rel)
        if kind(rel) == "read" and rel.read.named_table.names[0] == INPUT_SCHEMA
    ]
    old = Plan()
    old.ParseFromString(before)
    (original,) = [
        rel
        for rel in walk(old.relations[0].rel)
        if kind(rel) == "read" and rel.read.named_table.names[-1] == "facts"
    ]
    del renamed.read.named_table.names[:]
    renamed.read.named_table.names.extend(original.read.named_table.names)
    assert plan == old


def test_inputs_of_the_fragment_stay() -> None:
    once = renaming.renamed(fragment("SELECT id FROM facts"), names(facts="x"))
    again = renaming.renamed(once.fragment, names(facts="y", x="z"))
    assert reads(again.fragment) == [SHARE]
    assert not again.read and not again.left


def test_a_table_named_like_the_schema_of_inputs_is_still_a_table() -> None:
    plan = Plan()
    plan.ParseFromString(fragment("SELECT id FROM facts"))
    (read,) = [rel for rel in walk(plan.relations[0].rel) if kind(rel) == "read"]
    del read.read.named_table.names[:]
    read.read.named_table.names.extend(("caraway", "public", INPUT_SCHEMA))
    made = renaming.renamed(plan.SerializeToString(), names(exchange="x"))
    assert made.read == {"exchange"}
    assert reads(made.fragment) == [SHARE]

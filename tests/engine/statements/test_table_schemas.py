"""Schemas of tables that several contexts share, as the engine sees them."""

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from caraway_engine.statements.table_schemas import TableSchema
from caraway_engine.stored import making

SCHEMA = pa.schema([("x", pa.int64())])
TABLES = [
    making.table([[pa.record_batch({"x": [number]}, schema=SCHEMA)]], SCHEMA) for number in range(4)
]
NAME = st.sampled_from(["a", "B", 'o"dd', "s.t", ""])


class Schemas(RuleBasedStateMachine):
    """A schema and copies that were made at some time, each with a dictionary as its model."""

    def __init__(self) -> None:
        super().__init__()
        self.made = [(TableSchema(), dict[str, int]())]

    @rule(name=NAME, number=st.integers(0, 3), which=st.integers(0, 9))
    def add(self, name: str, number: int, which: int) -> None:
        schema, model = self.made[which % len(self.made)]
        schema.register_table(name, TABLES[number])
        model[name] = number

    @rule(name=NAME, which=st.integers(0, 9))
    def remove(self, name: str, which: int) -> None:
        schema, model = self.made[which % len(self.made)]
        schema.deregister_table(name)
        model.pop(name, None)

    @rule(which=st.integers(0, 9))
    def copy(self, which: int) -> None:
        schema, model = self.made[which % len(self.made)]
        if len(self.made) < 4:
            self.made.append((schema.copy(), dict(model)))

    @invariant()
    def each_has_its_own_tables(self) -> None:
        for schema, model in self.made:
            assert schema.table_names == sorted(model)
            for name in ("a", "B", 'o"dd', "s.t", "", "nothing"):
                number = model.get(name)
                assert schema.table_exist(name) == (number is not None)
                assert schema.table(name) is (None if number is None else TABLES[number])


TestSchemas = Schemas.TestCase
TestSchemas.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def test_a_change_is_seen_by_every_context_and_by_no_copy() -> None:
    schema = TableSchema()
    contexts = [SessionContext() for _ in range(2)]
    for context in contexts:
        context.catalog().register_schema("own", schema)
    other = schema.copy()
    apart = SessionContext()
    apart.catalog().register_schema("own", other)
    schema.register_table("t", TABLES[2])
    for context in contexts:
        assert context.sql("SELECT x FROM own.t").to_pylist() == [{"x": 2}]
    assert other.table("t") is None
    with pytest.raises(Exception, match="not found"):
        apart.sql("SELECT x FROM own.t")
    plan = contexts[0].sql("SELECT x FROM own.t")
    schema.register_table("t", TABLES[3])
    # A plan keeps the table that it was made with.
    assert plan.to_pylist() == [{"x": 2}]
    assert contexts[1].sql("SELECT x FROM own.t").to_pylist() == [{"x": 3}]

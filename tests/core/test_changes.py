"""The schema of a log of changes, and changes that are joined."""

import pyarrow as pa

from caraway_core import changes
from caraway_core.changes import OFFSET, OP, Changes, Op

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("a", pa.string())])


def of(*ids: int) -> Changes:
    schema = changes.log_schema(SCHEMA)
    rows = [{"id": each, "a": None, OP: Op.UPSERT, OFFSET: None} for each in ids]
    return Changes(pa.Table.from_pylist(rows, schema), len(ids))


def test_a_log_has_all_columns_nullable_and_two_more() -> None:
    schema = changes.log_schema(SCHEMA)
    assert schema.names == ["id", "a", OP, OFFSET]
    assert [field.nullable for field in schema] == [True, True, False, True]
    assert changes.without_log(schema).names == SCHEMA.names
    # A dataset without rows of a log has its columns still.
    assert changes.without_log(SCHEMA) == SCHEMA


def test_changes_are_joined_in_their_order() -> None:
    joined = changes.joined([of(3, 1), of(), of(2)])
    assert joined.rows.column("id").to_pylist() == [3, 1, 2]
    assert (joined.received, joined.entries) == (3, ())


def test_operations_keep_their_numbers() -> None:
    # They are stored.
    assert [each.value for each in Op] == list(range(8))
    assert {Op.TRUNCATE, Op.EMPTIED} == changes.WITHOUT_KEY

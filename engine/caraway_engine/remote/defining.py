"""Tables that a database creates with the rows of a statement, or drops."""

from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from caraway_core.errors import InvalidQueryError
from caraway_core.statements.definitions import TableDefinition
from caraway_engine.remote import answers
from caraway_engine.remote.writing import InsertingRows, Writing

types = pa.types


def defining(
    definition: TableDefinition, schema: pa.Schema, start: Callable[[], object]
) -> Writing:
    """Return what creates a table with rows, which `start` returns as a stream, or drops one.

    Raises:
        InvalidQueryError: the database cannot keep its columns.
    """
    table = definition.table
    creator = answers.creator(table.reader)
    if creator is None:
        raise InvalidQueryError(
            f"{definition.verb} is not supported: tables are not created in {table.reader}"
        )
    if definition.is_dropped:
        return creator.drop(table)
    columns = _columns(definition, schema)
    return InsertingRows(creator.create(definition, columns), start, columns, "nothing was created")


def _columns(definition: TableDefinition, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a new table.

    Raises:
        InvalidQueryError: two have one name, or a column is missing, or has no type.
    """
    title = f"{definition.verb} of {definition.table.title}"
    twice = [name for name, count in Counter(map(str.lower, schema.names)).items() if count > 1]
    if twice:
        raise InvalidQueryError(
            f"{title}: two columns have the name '{twice[0]}'; name them apart by AS"
        )
    for name in (*definition.required, *definition.primary_key):
        if name not in schema.names:
            raise InvalidQueryError(f"{title}: there is no column '{name}'")
    for each in schema:
        if types.is_null(each.type):
            raise InvalidQueryError(
                f"{title}: column '{each.name}' has no type; write CAST(NULL AS ...)"
            )
    return pa.schema([pa.field(each.name, _type(each.type)) for each in schema])


def _type(type_: pa.DataType) -> pa.DataType:
    """Return a type that databases have; values that it cannot keep are errors."""
    if types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz and "UTC")
    if types.is_time(type_):
        return pa.time64("us")
    if types.is_large_string(type_) or types.is_string_view(type_):
        return pa.string()
    if types.is_dictionary(type_):
        return _type(type_.value_type)
    is_bytes = types.is_large_binary(type_) or types.is_binary_view(type_)
    return pa.binary() if is_bytes or types.is_fixed_size_binary(type_) else type_

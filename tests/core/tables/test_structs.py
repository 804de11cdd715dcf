"""Structs in the types of columns."""

import pyarrow as pa
import pytest

from caraway_core.tables import structs

_INNER = pa.struct([("x", pa.int64())])
_NEEDED = pa.struct([pa.field("x", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("type_", "has"),
    [
        (pa.int64(), False),
        (pa.list_(pa.int64()), False),
        (_INNER, True),
        (pa.struct([]), True),
        (pa.list_(_INNER), True),
        (pa.list_(pa.list_(_INNER), 2), True),
        (pa.map_(pa.string(), pa.int64()), True),
        (pa.dictionary(pa.int32(), pa.string()), False),
    ],
)
def test_structs_in_types(type_: pa.DataType, has: bool) -> None:
    assert structs.has_structs(type_) is has


@pytest.mark.parametrize(
    ("type_", "nullable", "has"),
    [
        (pa.int64(), False, False),
        (_INNER, True, False),
        (_NEEDED, True, True),
        (_NEEDED, False, False),
        (pa.struct([pa.field("s", _NEEDED)]), False, True),
        (pa.struct([pa.field("s", _NEEDED, nullable=False)]), False, False),
        (pa.struct([pa.field("s", _NEEDED, nullable=False)]), True, True),
        (pa.list_(_NEEDED), True, True),
        (pa.list_(pa.field("item", _NEEDED, nullable=False)), True, False),
    ],
)
def test_fields_that_a_null_struct_lacks(type_: pa.DataType, nullable: bool, has: bool) -> None:
    assert structs.has_required(pa.field("c", type_, nullable=nullable)) is has

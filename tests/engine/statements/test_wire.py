"""The reader and writer of protobuf messages, held against protobuf itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from substrait.algebra_pb2 import Expression, FilterRel, ReadRel, Rel

from caraway_engine.statements import wire

MOST = 2**64 - 1


def rel(*names: str, limit: int = 0) -> Rel:
    made = Rel()
    made.read.named_table.names.extend(names)
    if limit:
        made.read.common.emit.output_mapping.extend([limit])
    return made


def read_tags(message: bytes) -> list[int]:
    return [field.tag for field in wire.fields(message)]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31 - 1, 2**32, 2**63, MOST])
@pytest.mark.parametrize("tag", [1, 15, 16, 2047, 2**29 - 1])
def test_a_number_reads_back(tag: int, value: int) -> None:
    text = wire.number(tag, value)
    assert list(wire.fields(text)) == [
        wire.Field(tag, 0, len(text) - len(wire.number(1, value)) + 1, len(text), value, False)
    ]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 100_000])
def test_content_of_any_length_reads_back(size: int) -> None:
    content = b"\xff" * size
    (field,) = wire.fields(wire.message(3, content))
    assert (field.tag, field.content(wire.message(3, content))) == (3, content)
    assert (field.is_bytes, field.number) == (True, 0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, MOST) | st.binary(max_size=300))))
def test_fields_follow_each_other_without_a_gap(held: list[tuple[int, int | bytes]]) -> None:
    text = b"".join(
        wire.number(tag, value) if isinstance(value, int) else wire.message(tag, value)
        for tag, value in held
    )
    found = list(wire.fields(text))
    assert [0, *(field.end for field in found)] == [*(field.start for field in found), len(text)]
    assert [
        (field.tag, field.content(text) if field.is_bytes else field.number) for field in found
    ] == held


def test_what_protobuf_writes_is_read() -> None:
    literal = Expression.Literal(fp64=-0.0, nullable=True)
    other = Expression.Literal(fp32=1.5)
    for made in (literal, other):
        text = made.SerializeToString()
        expected = {each.number for each, _ in made.ListFields()}
        assert set(read_tags(text)) == expected
    assert wire.message(1, b"ab") + wire.number(2, 300) == bytes.fromhex("0a026162 10ac02")


@pytest.mark.parametrize(
    "text",
    [
        b"\x80",
        b"\x08",
        b"\x08\xff",
        b"\x0a",
        b"\x0a\x05abcd",
        b"\x09abcdefg",
        b"\x0dabc",
        b"\x0b",
        b"\x0c",
        b"\x0e\x00",
        b"\x0f\x00",
        b"\x0a\xff\xff\xff\xff\x0f",
    ],
)
def test_what_is_cut_or_no_message_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="protobuf"):
        list(wire.fields(text))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(text: bytes) -> None:
    try:
        found = list(wire.fields(text))
    except ValueError:
        return
    assert all(0 <= f.start < f.inside <= f.end <= len(text) for f in found)


def test_a_part_of_a_message_is_read_within_its_bounds() -> None:
    inner = wire.number(1, 7) + wire.message(2, b"xyz")
    outer = wire.message(9, inner) + wire.number(3, 1)
    (field, last) = wire.fields(outer)
    assert [f.tag for f in wire.fields(outer, field.inside, field.end)] == [1, 2]
    assert last.number == 1
    with pytest.raises(ValueError, match="longer than its message"):
        list(wire.fields(outer, field.inside, field.end - 1))


@pytest.mark.parametrize("size", [1, 100, 127, 128, 200, 20_000])
def test_a_replaced_message_leaves_all_around_it_well_formed(size: int) -> None:
    """Lengths around it need one byte or several, before and after."""
    old, new = rel("old" * 30), rel("n" * size)
    tree = Rel(filter=FilterRel(input=Rel(filter=FilterRel(input=old))))
    tree.filter.condition.literal.i64 = 5
    text = wire.replaced(tree.SerializeToString(), old.SerializeToString(), new.SerializeToString())
    expected = Rel()
    expected.CopyFrom(tree)
    expected.filter.input.filter.input.CopyFrom(new)
    found = Rel()
    found.ParseFromString(text)
    assert found == expected
    assert wire.replaced(text, new.SerializeToString(), old.SerializeToString()) == (
        tree.SerializeToString()
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_place_of_a_message_is_replaced(count: int) -> None:
    tree = Rel()
    tree.set.inputs.extend([rel("a"), *[rel("t", "longer")] * count, rel("b")])
    text = wire.replaced(
        tree.SerializeToString(), rel("t", "longer").SerializeToString(), rel().SerializeToString()
    )
    found = Rel()
    found.ParseFromString(text)
    assert [list(each.read.named_table.names) for each in found.set.inputs] == [
        ["a"],
        *[[]] * count,
        ["b"],
    ]


def test_the_whole_message_can_be_replaced() -> None:
    assert wire.replaced(b"\x08\x01", b"\x08\x01", b"\x08\x02\x10\x03") == b"\x08\x02\x10\x03"


@pytest.mark.parametrize(
    ("outer", "inner", "message"),
    [
        (wire.message(1, b"abc"), b"zzz", "not inside the other"),
        # The same bytes, but not as a field: across two of them.
        (wire.message(1, b"ab") + wire.message(1, b"cd"), b"b\x0a\x02c", "not a field of the"),
        # Within a number.
        (wire.number(1, 300), b"\x02", "not a field of the other"),
    ],
)
def test_what_is_no_message_within_the_other_is_not_replaced(
    outer: bytes, inner: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wire.replaced(outer, inner, b"new")


def test_a_read_of_substrait_has_the_tags_that_protobuf_gives() -> None:
    read = ReadRel()
    read.named_table.names.append("x")
    (field,) = wire.fields(read.SerializeToString())
    assert field.tag == ReadRel.DESCRIPTOR.fields_by_name["named_table"].number

"""Positions in the stream of a table, as texts."""

import pytest

from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.dynamodb import positions
from caraway_plugins.changes.dynamodb.positions import StreamPosition


@pytest.mark.parametrize("is_loading", [False, True])
@pytest.mark.parametrize("shards", [{}, {"b": ("2", True), "a": ("1", False)}, {'"': ("é", True)}])
def test_texts_are_read_again(shards: dict[str, tuple[str, bool]], is_loading: bool) -> None:
    position = StreamPosition("arn:s", shards, is_loading)
    assert positions.read(position.text(), "arn:s") == position


def test_equal_positions_have_equal_texts() -> None:
    one = StreamPosition("s", {"a": ("1", False), "b": ("2", True)})
    other = StreamPosition("s", {"b": ("2", True), "a": ("1", False)})
    assert one.text() == other.text() == '["s",{"a":["1",false],"b":["2",true]},false]'


@pytest.mark.parametrize(
    "text",
    ["", "5", "null", "{}", "[]", '["s"]', '["s",{},false,1]', '["s",[],false]', '["s",{"a":1},0]',
     '["s",{"a":[]},0]', '["s",{"a":["1"]},0]', '["s",null,0]', "0/16B3748", '{"file":"b.1"}'],
)  # fmt: skip
def test_texts_of_others_are_lost_positions(text: str) -> None:
    with pytest.raises(PositionLostError, match="not one of DynamoDB"):
        positions.read(text, "s")


def test_another_stream_is_a_lost_position() -> None:
    with pytest.raises(PositionLostError, match="another stream than before"):
        positions.read(StreamPosition("old", {}).text(), "new")

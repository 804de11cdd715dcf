"""Results of tools: within the limits, cut, or refused."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_ai import json_values
from caraway_ai.tools import bounding
from caraway_ai.tools.bounding import ToolLimits
from caraway_core.errors import ToolError

_NOTE_BYTES = len(orjson.dumps(bounding.cut([]))) + 20
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**12) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(_VALUES, max_size=30), st.integers(1, 20), st.integers(20, 400))
def test_a_list_is_cut_to_its_first_rows_and_no_shorter_than_need_be(
    rows: list[Any], most_rows: int, most_bytes: int
) -> None:
    limits = ToolLimits(most_rows, most_bytes)

    def fits(count: int) -> bool:
        return count <= most_rows and len(json_values.dumped(rows[:count])) <= most_bytes

    if fits(len(rows)):
        assert bounding.bounded("t", rows, limits) is rows
        return
    longest = max(count for count in range(len(rows)) if fits(count))
    if not longest:
        with pytest.raises(ToolError, match=r"tool 't' has more than .* bytes; ask for fewer"):
            bounding.bounded("t", rows, limits)
        return
    cut = bounding.bounded("t", rows, limits)
    assert cut["rows"] == rows[:longest]
    assert cut["is_truncated"] is True
    assert f"the first {len(cut['rows'])} rows" in cut["note"]
    assert len(json_values.dumped(cut)) <= most_bytes + _NOTE_BYTES


@settings(max_examples=80, deadline=None)
@given(_VALUES, st.integers(10, 60))
def test_what_is_cut_twice_is_what_is_cut_once(value: Any, most_bytes: int) -> None:
    limits = ToolLimits(3, most_bytes)
    try:
        once = bounding.bounded("t", value, limits)
    except ToolError:
        return
    assert repr(bounding.bounded("t", once, limits)) == repr(once)


def test_a_cut_result_is_cut_further_by_smaller_limits() -> None:
    rows = [{"n": number} for number in range(10)]
    once = bounding.bounded("t", rows, ToolLimits(rows=8))
    assert bounding.bounded("t", once, ToolLimits(rows=3)) == bounding.cut(rows[:3])
    with pytest.raises(ToolError, match="one row of the result of tool 't'"):
        bounding.bounded("t", once, ToolLimits(bytes=5))


@pytest.mark.parametrize(
    "rows", [[], [1], [{"n": "x" * 100}] * 40, ["é" * 50] * 40, [[]] * 300], ids=range(5)
)
def test_the_result_of_a_found_tool_is_bounded_like_that_of_a_called_one(rows: list[Any]) -> None:
    limits = ToolLimits(rows=20, bytes=1000)
    called = bounding.bounded("t", rows, limits)
    found = bounding.bounded("tool_invoke", {"tool_id": "t", "result": rows}, limits)
    assert found == {"tool_id": "t", "result": called}
    again = bounding.bounded("tool_invoke", {"tool_id": "t", "result": called}, limits)
    assert again == found


def test_an_error_about_a_found_tool_names_it() -> None:
    for result in ("x" * 200, {"a": "x" * 200}, ["x" * 200]):
        with pytest.raises(ToolError, match="tool 'big'"):
            bounding.bounded(
                "tool_invoke", {"tool_id": "big", "result": result}, ToolLimits(bytes=100)
            )


def test_only_the_runtime_can_put_a_result_in_another() -> None:
    result = {"tool_id": "x", "result": [1] * 30}
    assert bounding.bounded("http_tool", result, ToolLimits(rows=3)) is result
    with pytest.raises(ToolError, match="tool 'http_tool' has 67 bytes, and at most 50"):
        bounding.bounded("http_tool", {"tool_id": "x" * 41, "result": []}, ToolLimits(bytes=50))


@pytest.mark.parametrize("size", [0, 1, 97, 98])
def test_a_result_of_exactly_the_limit_is_returned(size: int) -> None:
    text = "x" * size
    assert bounding.bounded("t", text, ToolLimits(bytes=size + 2)) == text
    with pytest.raises(ToolError, match=f"has {size + 2} bytes, and at most {size + 1}"):
        bounding.bounded("t", text, ToolLimits(bytes=size + 1))


def test_characters_count_by_their_bytes() -> None:
    assert bounding.bounded("t", "é" * 49, ToolLimits(bytes=100)) == "é" * 49
    with pytest.raises(ToolError, match="has 102 bytes"):
        bounding.bounded("t", "é" * 50, ToolLimits(bytes=100))


def test_integers_of_any_size_are_json() -> None:
    value = [{"n": 2**70}, {"n": -(10**40)}]
    assert bounding.bounded("t", value, ToolLimits()) is value
    assert bounding.bounded("t", value, ToolLimits(rows=1))["rows"] == value[:1]


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [_nested(100_000), "\ud800", {"a": ["\udfff"]}, [_nested(2000)]])
def test_what_is_not_json_is_refused_by_the_name_of_the_tool(value: Any) -> None:
    try:
        result = bounding.bounded("t", value, ToolLimits())
    except ToolError as exc:
        assert exc.message.startswith("tool 't' returned what is not JSON: ")
    else:
        assert result is value

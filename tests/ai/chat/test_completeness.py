"""Answers that are cut off or damaged are refused, even if the provider calls them complete."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_core.errors import ModelError

MESSAGE = {"role": "assistant", "content": "x"}
CHOICE = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}


def whole(**changed: Any) -> dict[str, Any]:
    return {"choices": [{**CHOICE, **changed}]}


@pytest.mark.parametrize(
    "answer",
    [
        None, [], "x", {}, {"choices": None}, {"choices": []}, {"choices": {"0": CHOICE}},
        {"choices": [None]}, {"choices": [CHOICE, {}]}, whole(message=None), whole(message="x"),
        whole(finish_reason=None), whole(finish_reason=""), whole(message={"content": 5}),
        whole(message={"content": {"text": "x"}}), whole(message={"tool_calls": {}}),
        whole(message={"tool_calls": ["f"]}), whole(message={"tool_calls": [{"function": "f"}]}),
        whole(message={"tool_calls": [{"id": "a"}]}), whole(finish_reason={"a": 1}),
        whole(message={"tool_calls": [{"function": {"name": ["f"]}}]}),
        whole(message={"refusal": ["no"]}), whole(message={"annotations": ["x"]}),
    ],
)  # fmt: skip
def test_a_damaged_answer(answer: Any) -> None:
    with pytest.raises(ModelError, match="model 'm': the answer of its provider is damaged") as got:
        check_completion(answer, "m")
    assert got.value.type == "failed"


def test_what_clients_rely_on_is_filled_in() -> None:
    found = check_completion({**whole(), "object": "other", "id": None, "extra": 1}, "m")
    assert found["object"] == "chat.completion" and found["id"].startswith("chatcmpl-")
    assert found["created"] > 0 and found["extra"] == 1
    assert check_completion({**whole(), "id": "a", "created": 5}, "m")["id"] == "a"


def test_calls_get_what_clients_need_to_answer_them() -> None:
    calls = [
        {"function": {"name": "f", "arguments": {"a": 1}}}, {"id": 7, "function": {"name": "g"}},
        {"id": "c", "type": "custom", "custom": {"name": "h", "input": "x"}},
    ]  # fmt: skip
    answer = {**whole(message={"tool_calls": calls}), "id": 5, "created": "now", "usage": "many"}
    found = check_completion(answer, "m")
    assert found["id"].startswith("chatcmpl-") and type(found["created"]) is int
    assert "usage" not in found
    first, second, third = found["choices"][0]["message"]["tool_calls"]
    assert first["id"] and first["type"] == "function"
    assert first["function"]["arguments"] == '{"a": 1}'
    assert (second["id"], second["function"]["arguments"]) == ("7", "")
    assert third == {"id": "c", "type": "custom", "custom": {"name": "h", "input": "x"}}


def test_fewer_choices_than_asked_for_are_damaged() -> None:
    assert check_completion({"choices": [CHOICE, CHOICE]}, "m", 2)["choices"] == [CHOICE, CHOICE]
    with pytest.raises(ModelError, match="it has 1 of 3 choices"):
        check_completion(whole(), "m", 3)


def test_a_content_of_parts_becomes_its_text() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, None, {"text": 5},
        {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
    ]  # fmt: skip
    found = check_completion(whole(message={"role": "assistant", "content": parts}), "m")
    assert found["choices"][0]["message"]["content"] == "ab"
    chunk = StreamCheck("m", 1).check_chunk({"choices": [{"delta": {"content": parts}}]})
    assert chunk["choices"][0]["delta"]["content"] == "ab"


@pytest.mark.parametrize(
    "chunk",
    [
        None, [], "x", {}, {"choices": None}, {"choices": {}}, {"choices": ["x"]},
        {"choices": [{"index": [0]}]}, {"choices": [{"index": "0"}]},
        {"choices": [{"index": True}]},
        {"choices": [{"delta": {"content": 5}}]}, {"choices": [{"delta": {"tool_calls": 5}}]},
        {"choices": [{"delta": {"tool_calls": ["f"]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "f"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": ["f"]}}]}}]},
        {"choices": [{"delta": "x", "finish_reason": "stop"}]},
        {"choices": [{"finish_reason": {"a": 1}}]}, {"choices": [{"delta": {"refusal": 5}}]},
    ],
)  # fmt: skip
def test_a_damaged_chunk(chunk: Any) -> None:
    with pytest.raises(ModelError, match="is damaged"):
        StreamCheck("m", 1).check_chunk(chunk)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["choices", "delta", "index", "content", "tool_calls", "function",
                         "finish_reason", "usage", "message"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_any_json_is_an_answer_or_an_error(body: Any) -> None:
    check = StreamCheck("m", 1)
    try:
        check.check_chunk(body)
        check.end()
    except ModelError:
        pass
    try:
        check_completion(body, "m")
    except ModelError:
        pass


def finish(*indexes: int | None) -> dict[str, Any]:
    return {"choices": [{"index": i, "delta": {}, "finish_reason": "stop"} for i in indexes]}


@pytest.mark.parametrize(
    ("choices", "chunks", "is_complete"),
    [
        (1, [], False),
        (1, [finish()], False),
        (1, [finish(None)], True),
        (2, [finish(1)], False),
        (2, [finish(1), finish(0)], True),
        (2, [finish(0, 1)], True),
        (1, [{"choices": [{"delta": {"content": "x"}, "finish_reason": None}]}], False),
        (1, [{"choices": [{"finish_reason": "stop"}]}], True),
        (1, [finish(0), {"usage": {"total_tokens": 1}}], True),
        (1, [{"choices": None, "usage": {}}], False),
    ],
)
def test_a_stream_is_complete_when_each_choice_has_an_end(
    choices: int, chunks: list[Any], is_complete: bool
) -> None:
    check = StreamCheck("m", choices)
    for chunk in chunks:
        taken = check.check_chunk(chunk)
        assert taken["object"] == "chat.completion.chunk" and isinstance(taken["choices"], list)
    assert check.is_complete == is_complete
    if is_complete:
        check.end()
        return
    with pytest.raises(ModelError, match="ended before the answer was complete"):
        check.end()


def test_chunks_of_one_stream_have_one_id() -> None:
    check = StreamCheck("m", 1)
    taken = [check.check_chunk({"choices": [], "id": None, "created": 0}) for _ in range(3)]
    assert len({(each["id"], each["created"]) for each in taken}) == 1
    assert check.check_chunk({"choices": [], "id": "own"})["id"] == "own"


def test_whole_calls_without_an_index_get_their_own() -> None:
    check = StreamCheck("m", 2)
    indexes: list[tuple[int, int]] = []
    for choice in (0, 0, 1, 0):
        calls = [{"id": "x", "function": {"name": "f"}}, {"index": None, "function": None}]
        chunk = check.check_chunk({"choices": [{"index": choice, "delta": {"tool_calls": calls}}]})
        found = chunk["choices"][0]["delta"]["tool_calls"]
        indexes += [(choice, call["index"]) for call in found]
    assert [n for choice, n in indexes if choice == 0] == [0, 1, 2, 3, 4, 5]
    assert [n for choice, n in indexes if choice == 1] == [0, 1]

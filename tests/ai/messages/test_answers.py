"""Answers of chats as messages, whole and as events."""

from typing import Any

import pytest

from caraway_ai.messages import answers
from caraway_ai.messages.answers import MessageEvents
from tests.kit.scripted_provider import chunk, completion


def blocks(*chunks: Any, shows_thoughts: bool = False) -> list[Any]:
    """Return the types of the events of blocks, and their deltas."""
    events = MessageEvents("m", shows_thoughts=shows_thoughts)
    told = [event for each in chunks for event in events.events_of_chunk(each)] + list(events.end())
    return [
        (event["index"], event.get("delta") or event.get("content_block") or "stop")
        for event in told
        if "index" in event
    ]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("tool_calls", "tool_use"),
     ("content_filter", "refusal"), ("other", "end_turn")],
)  # fmt: skip
def test_reasons(finish: str, reason: str) -> None:
    answer = completion("x")
    answer["choices"][0]["finish_reason"] = finish
    assert answers.message("m", answer, shows_thoughts=False)["stop_reason"] == reason
    events = MessageEvents("m", shows_thoughts=False)
    list(events.events_of_chunk(chunk(finish=finish)))
    assert [*events.end()][-2]["delta"]["stop_reason"] == reason


def test_thoughts_are_shown_only_to_those_who_ask() -> None:
    answer = completion("x", reasoning_content="hm")
    shown = answers.message("m", answer, shows_thoughts=True)["content"]
    assert [each["type"] for each in shown] == ["thinking", "text"]
    hidden = answers.message("m", answer, shows_thoughts=False)["content"]
    assert [each["type"] for each in hidden] == ["text"]
    said = (chunk(reasoning_content="hm"), chunk("x"), chunk(finish="stop"))
    assert [index for index, _ in blocks(*said, shows_thoughts=True)] == [0, 0, 0, 1, 1, 1]
    assert [index for index, _ in blocks(*said)] == [0, 0, 0]


def test_arguments_that_are_no_object_are_shown_as_they_are() -> None:
    function = {"name": "f", "arguments": "[1"}
    answer = completion(None, tool_calls=[{"id": None, "function": function}])
    (block,) = answers.message("m", answer, shows_thoughts=False)["content"]
    assert block["input"] == {"arguments": "[1"} and block["id"].startswith("toolu_")


def test_text_after_a_call_of_a_tool_is_a_block_after_it() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    told = blocks(chunk(tool_calls=[call]), chunk("late"), chunk(finish="tool_calls"))
    assert told == [
        (0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        (0, {"type": "input_json_delta", "partial_json": "{}"}),
        (0, "stop"),
        (1, {"type": "text", "text": ""}),
        (1, {"type": "text_delta", "text": "late"}),
        (1, "stop"),
    ]


def test_an_answer_without_words_has_no_blocks() -> None:
    assert blocks(chunk(finish="stop")) == []
    assert answers.message("m", completion(None), shows_thoughts=False)["content"] == []

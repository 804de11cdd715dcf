"""Calls that small models write as text, whole and in chunks of any size."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.local.written_calls import (
    WrittenCallReader,
    chunks_of,
    has_calls,
    split_calls,
    with_calls,
)
from caraway_ai.protocols import ChatChunk, JsonObject

NAMES = frozenset({"sql", "weather"})
CALL = '{"name": "sql", "arguments": {"query": "SELECT \'<tool_call>\'"}}'
ARGUMENTS = {"query": "SELECT '<tool_call>'"}
WRITTEN = [
    CALL,
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>{CALL}",
    f"```json\n{CALL}\n```",
    f"```json\n{CALL}\n```\n\n\n\n",
    f"  ```\n{CALL}```\nThis counts the rows.",
    f"{CALL}.0000000",
    f"[{CALL}]",
    f"{CALL}\n{CALL}",
    CALL.replace("arguments", "parameters"),
    json.dumps({"name": "sql", "arguments": json.dumps(ARGUMENTS)}),
]
PLAIN = [
    "",
    "There are 15 rows.",
    "{",
    '{"name": "sql"}',
    '{"name": "other", "arguments": {}}',
    '{"name": ["sql"], "arguments": {}}',
    '{"name": "sql", "arguments": [1]}',
    '{"name": "sql", "arguments": "not JSON"}',
    '{"name": "sql", "arguments": {"query": "cut',
    "[1, 2, 3]",
    "```sql\nSELECT 1\n```",
    f"Send this: {CALL}",
    "a <tool_call> is written so",
    "[" * 100_000,
]


def completion(text: str) -> JsonObject:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": {"n": 1}}


def streamed(parts: Sequence[str]) -> tuple[str, Sequence[JsonObject], Any]:
    """Return the content, the calls and the reason of a stream with these parts."""
    reader, chunks = WrittenCallReader(NAMES), list[ChatChunk]()
    for number, part in enumerate([*parts, ""]):
        reason = "stop" if number == len(parts) else None
        delta = {"role": "assistant", "content": part} if number == 0 else {"content": part}
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunks += reader.read_chunk({"id": "1", "choices": [choice]})
    chunks += reader.read_chunk({"id": "1", "choices": [], "usage": {"n": 1}})
    assert chunks[-1]["usage"] == {"n": 1}
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    content = "".join(choice["delta"].get("content") or "" for choice in choices)
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls") or ()]
    reasons = [each["finish_reason"] for each in choices if each["finish_reason"] is not None]
    assert len(reasons) == 1
    return content, calls, reasons[0]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_written_call_is_a_call(text: str) -> None:
    answer = with_calls(completion(text), NAMES)
    (choice,) = answer["choices"]
    assert has_calls(answer)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "sql"
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS
    assert call["id"]


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_stays_text(text: str) -> None:
    assert with_calls(completion(text), NAMES) == completion(text)
    assert not has_calls(completion(text))


def test_text_before_a_tag_stays_and_several_calls_are_read() -> None:
    other = '{"name": "weather", "arguments": {}}'
    text = f"I look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{other}</tool_call>"
    content, calls = split_calls(text, NAMES)
    assert content == "I look."
    assert [call["function"]["name"] for call in calls] == ["sql", "weather"]
    assert len({call["id"] for call in calls}) == 2


def test_the_number_of_calls_is_bounded() -> None:
    text = "\n".join(f'{{"name": "sql", "arguments": {{"n": {n}}}}}' for n in range(100))
    assert len(split_calls(text, NAMES)[1]) == 32


@given(st.sampled_from([*WRITTEN, *PLAIN[:-1], f"I look. <tool_call>{CALL}", "a < b"]), st.data())
def test_a_stream_is_read_as_the_whole_text(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    content, calls, reason = streamed(parts)
    whole_content, whole_calls = split_calls(text, NAMES)
    assert content.strip() == whole_content.strip()
    assert [call["function"] for call in calls] == [call["function"] for call in whole_calls]
    assert reason == ("tool_calls" if whole_calls else "stop")
    assert [call["index"] for call in calls] == list(range(len(calls)))


def test_text_that_is_no_call_is_sent_at_once() -> None:
    reader = WrittenCallReader(NAMES)

    def sent(text: str) -> list[ChatChunk]:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return list(reader.read_chunk({"choices": [choice]}))

    assert sent("  ") == []
    (chunk,) = sent("There")
    assert chunk["choices"][0]["delta"]["content"] == "  There"
    (chunk,) = sent(" are <")
    assert chunk["choices"][0]["delta"]["content"] == " are "


def test_a_whole_answer_becomes_a_stream() -> None:
    answer = with_calls(completion(CALL), NAMES)
    first, last = chunks_of(answer)
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    assert last["choices"] == [] and last["usage"] == {"n": 1}

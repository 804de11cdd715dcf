"""The events of a provider with the responses API, as a test scripts them."""

from typing import Any

from tests.kit.scripted_provider import Script

PATH = "/v1/responses"
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 7,
}
NOTE = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0,
        "end_index": 2}  # fmt: skip
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "secret"}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed",
          "action": {"type": "search", "query": "q"}}  # fmt: skip


def message(text: str = "hello", id_: str = "msg_1") -> dict[str, Any]:
    """Return an item with a text that has an annotation."""
    part = {"type": "output_text", "text": text, "annotations": [NOTE], "logprobs": []}
    return {"id": id_, "type": "message", "role": "assistant", "status": "completed",
            "content": [part]}  # fmt: skip


def call(name: str, arguments: str = "{}", id_: str = "c1") -> dict[str, Any]:
    """Return an item that calls a function."""
    return {"id": f"fc_{id_}", "type": "function_call", "status": "completed", "call_id": id_,
            "name": name, "arguments": arguments}  # fmt: skip


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a response with items."""
    return {
        "id": "resp_theirs", "object": "response", "created_at": 1, "status": status,
        "model": "gpt-4o-2024", "output": list(items), "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "previous_response_id": None,
        "store": False, "usage": USAGE, **more,
    }  # fmt: skip


def events(*items: dict[str, Any], end: str = "completed", **more: Any) -> Script:
    """Return the events of a whole stream."""
    empty = {**response(status="in_progress", **more), "usage": None}
    found: Script = [
        {"type": "response.created", "response": empty},
        {"type": "response.in_progress", "response": empty},
    ]
    for index, item in enumerate(items):
        found += _events_of(index, item)
    done = response(*items, status=end, **more)
    found.append({"type": f"response.{end}", "response": done})
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


def _events_of(index: int, item: dict[str, Any]) -> Script:
    at = {"item_id": item["id"], "output_index": index}
    begun = {**item, "status": "in_progress"} if "status" in item else item
    middle: Script = []
    if item["type"] == "message":
        part = item["content"][0]
        begun = {**begun, "content": []}
        at |= {"content_index": 0}
        empty = {**part, "text": "", "annotations": []}
        middle = [
            {"type": "response.content_part.added", **at, "part": empty},
            {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []},
            {"type": "response.output_text.annotation.added", **at, "annotation_index": 0,
             "annotation": NOTE},
            {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
        ]  # fmt: skip
    elif item["type"] == "function_call":
        begun = {**begun, "arguments": ""}
        middle = [
            {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **at, "name": item["name"],
             "arguments": item["arguments"]},
        ]  # fmt: skip
    elif item["type"] == "web_search_call":
        middle = [{"type": "response.web_search_call.searching", **at}]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    done = {"type": "response.output_item.done", "output_index": index, "item": item}
    return [added, *middle, done]

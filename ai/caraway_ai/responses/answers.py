"""Builds response objects from chat answers; pure functions."""

import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from caraway_ai.protocols import ChatCompletion, JsonObject
from caraway_ai.tool_loop.calls import of_message

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def new_id(prefix: str) -> str:
    """Return a new id of a response or of an item."""
    return f"{prefix}_{secrets.token_hex(24)}"


def begun(body: JsonObject) -> JsonObject:
    """Return the response of a request, as it is before the model said anything."""
    reasoning, text = body.get("reasoning") or {}, body.get("text") or {}
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True) is not False,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": body.get("service_tier") or "default",
        "store": body.get("store") is not False,
        "temperature": _or_one(body.get("temperature")),
        "text": {"format": text.get("format") or {"type": "text"},
                 **({"verbosity": text["verbosity"]} if text.get("verbosity") else {})},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_logprobs": 0,
        "top_p": _or_one(body.get("top_p")),
        "truncation": "disabled",
        "usage": None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }  # fmt: skip


def finished(
    response: JsonObject, output: Iterable[JsonObject], reason: str | None, used: object
) -> JsonObject:
    """Return a response with what the model said."""
    because = _INCOMPLETE.get(reason or "")
    return {
        **response,
        "status": "incomplete" if because else "completed",
        "incomplete_details": {"reason": because} if because else None,
        "output": list(output),
        "usage": usage(used) if isinstance(used, dict) else None,
    }


def answered(response: JsonObject, completion: ChatCompletion) -> JsonObject:
    """Return a response with a whole chat answer."""
    choice = completion["choices"][0]
    reason = choice["finish_reason"]
    output = output_items(choice["message"], item_status(reason))
    return finished(response, output, reason, completion.get("usage"))


def item_status(reason: str | None) -> str:
    """Return the status of the last item that a model said."""
    return "incomplete" if reason in _INCOMPLETE else "completed"


def output_items(message: JsonObject, last_status: str = "completed") -> list[JsonObject]:
    """Return the items of what a model said."""
    items: list[JsonObject] = []
    content: list[JsonObject] = []
    if message.get("content"):
        notes = [annotation(each) for each in message.get("annotations") or ()]
        content.append(text_part(message["content"], notes))
    if message.get("refusal"):
        content.append({"type": "refusal", "refusal": message["refusal"]})
    if content:
        items.append(message_item(new_id("msg"), "completed", content))
    for call in of_message(message):
        items.append(call_item(new_id("fc"), "completed", call.id, call.name, call.arguments))
    # A client that reads the text finds an empty one, not nothing.
    items = items or [message_item(new_id("msg"), "completed", [text_part("")])]
    items[-1]["status"] = last_status
    return items


def text_part(text: str, annotations: Iterable[JsonObject] = ()) -> JsonObject:
    """Return a part of a message with text."""
    return {"type": "output_text", "annotations": list(annotations), "logprobs": [], "text": text}


def message_item(id_: str, status: str, content: list[JsonObject]) -> JsonObject:
    """Return an item with a message of the assistant."""
    return {"id": id_, "type": "message", "status": status, "role": "assistant",
            "content": content}  # fmt: skip


def call_item(id_: str, status: str, call_id: str, name: str, arguments: str) -> JsonObject:
    """Return an item with a call of a function."""
    return {"id": id_, "type": "function_call", "status": status, "call_id": call_id,
            "name": name, "arguments": arguments}  # fmt: skip


def annotation(given: Mapping[str, object]) -> JsonObject:
    """Return an annotation of the chat wire, which nests it below its type, as one here."""
    kind = given.get("type")
    inner = given.get(str(kind))
    return {"type": kind, **inner} if isinstance(inner, dict) else dict(given)


def usage(counts: Mapping[str, object]) -> JsonObject:
    """Return the counts of tokens under the names of this API."""
    prompt = _mapping(counts.get("prompt_tokens_details"))
    reply = _mapping(counts.get("completion_tokens_details"))
    names = ("accepted_prediction_tokens", "audio_tokens", "reasoning_tokens",
             "rejected_prediction_tokens")  # fmt: skip
    return {
        "input_tokens": counts.get("prompt_tokens") or 0,
        "input_tokens_details": {
            name: prompt.get(name) or 0
            for name in ("audio_tokens", "cache_write_tokens", "cached_tokens")
        },
        "output_tokens": counts.get("completion_tokens") or 0,
        "output_tokens_details": {name: reply.get(name) or 0 for name in names},
        "total_tokens": counts.get("total_tokens") or 0,
    }


def chat_usage(counts: object) -> dict[str, object] | None:
    """Return the counts of tokens under the names of the chat wire."""
    if not isinstance(counts, Mapping):
        return None
    names = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"),
             ("total_tokens", "total_tokens"))  # fmt: skip
    return {name: counts.get(given) or 0 for name, given in names}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _or_one(value: object) -> object:
    return 1.0 if value is None else value

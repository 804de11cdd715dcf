"""Translates requests of the messages API into chat requests; pure functions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from caraway_ai.chat.checking import RequestFieldError, check_fields, check_messages
from caraway_ai.protocols import ChatRequest, JsonObject

_SAME = ("temperature", "top_p", "top_k", "stream", "speed", "container")
_TRANSLATED = frozenset(
    "model messages max_tokens system stop_sequences tools tool_choice metadata thinking "
    "service_tier output_config".split()
) | frozenset(_SAME)
_IGNORED = frozenset({"cache_control", "inference_geo"})
"""They change cost or place, not the answer."""
_TYPES: Mapping[str, tuple[type, str]] = {
    "system": (str, "a text or a list of text blocks"),
    "stop_sequences": (list, "a list of texts"),
    "tools": (list, "a list"),
    "tool_choice": (dict, "an object with a 'type'"),
    "metadata": (dict, "an object"),
    "thinking": (dict, "an object with a 'type'"),
    "output_config": (dict, "an object"),
}
_ROLES = ("user", "assistant", "system")
_THOUGHTS = ("thinking", "redacted_thinking")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def chat_request(body: Any) -> ChatRequest:
    """Return the chat request for a request.

    Raises:
        RequestFieldError: a field is wrong, or asks for what models here cannot do.
    """
    _check(body)
    request: ChatRequest = {"model": body["model"], "max_completion_tokens": body["max_tokens"]}
    for name in _SAME:
        if body.get(name) is not None:
            request[name] = body[name]
    if sequences := body.get("stop_sequences"):
        request["stop"] = sequences
    if user := (body.get("metadata") or {}).get("user_id"):
        request["user"] = user
    if tier := body.get("service_tier"):
        request["service_tier"] = "auto" if tier == "auto" else "default"
    if wants_thoughts(body):
        request["thinking"] = body["thinking"]
    if tools := body.get("tools"):
        request["tools"] = [_tool(f"tools[{index}]", tool) for index, tool in enumerate(tools)]
        request |= _choice(body.get("tool_choice") or {"type": "auto"})
    request |= _output(body.get("output_config") or {})
    messages = _system(body.get("system"))
    for index, message in enumerate(body["messages"]):
        messages += _messages(f"messages[{index}]", message)
    check_fields(request)
    check_messages(messages)
    request["messages"] = messages
    return request


def wants_thoughts(body: JsonObject) -> bool:
    """Return whether the caller wants to see the thoughts of the model."""
    return (body.get("thinking") or {}).get("type") not in (None, "disabled")


def _check(body: object) -> None:
    if not isinstance(body, dict):
        raise RequestFieldError("", "the request body must be a JSON object")
    for name, value in body.items():
        if value is not None and name not in _TRANSLATED and name not in _IGNORED:
            raise RequestFieldError(name[:100], "is not supported here; leave it out")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestFieldError("model", "must be the name of a model; GET /v1/models lists them")
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise RequestFieldError("max_tokens", "must be a whole number, 1 or more")
    for name, (type_, words) in _TYPES.items():
        value = body.get(name)
        if value is None or isinstance(value, type_):
            continue
        if not (name == "system" and isinstance(value, list)):
            raise RequestFieldError(name, f"must be {words}")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestFieldError("messages", "must be a list of at least one message")


def _system(given: object) -> list[JsonObject]:
    if not given:
        return []
    blocks = _blocks("system", given)
    texts = [_text(f"system[{index}]", block) for index, block in enumerate(blocks)]
    return [{"role": "system", "content": "\n\n".join(texts)}]


def _messages(at: str, message: Any) -> list[JsonObject]:
    """Return a message as those of a chat, where each result of a tool is one of its own."""
    role = message.get("role") if isinstance(message, dict) else None
    if role not in _ROLES:
        raise RequestFieldError(f"{at}.role", f"must be one of: {', '.join(_ROLES)}")
    blocks = _blocks(f"{at}.content", message.get("content"))
    results: list[JsonObject] = []
    parts: list[JsonObject] = []
    calls: list[JsonObject] = []
    for index, block in enumerate(blocks):
        here = f"{at}.content[{index}]"
        match block["type"]:
            case "tool_result" if role == "user":
                results.append(_result(here, block))
            case "tool_use" if role == "assistant":
                calls.append(_call(here, block))
            case kind if kind in _THOUGHTS and role == "assistant":
                pass  # The chat wire does not carry them.
            case _:
                parts.append(_part(here, block))
    said: JsonObject = {"role": role, "content": _content(parts)}
    if calls:
        said["tool_calls"] = calls
    elif not parts and role == "assistant":
        said["content"] = ""
    return [*results, said] if parts or calls or not results else results


def _content(parts: Sequence[JsonObject]) -> object:
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts) or None
    return list(parts)


def _blocks(at: str, content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise RequestFieldError(at, "must be a text or a list of blocks")
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise RequestFieldError(f"{at}[{index}]", "must be an object with a 'type'")
    return content


def _text(at: str, block: JsonObject) -> str:
    text = block.get("text")
    if block["type"] != "text" or not isinstance(text, str):
        raise RequestFieldError(at, "must be a block of the type 'text'")
    return text


def _part(at: str, block: JsonObject) -> JsonObject:
    match block["type"]:
        case "text":
            return {"type": "text", "text": _text(at, block)}
        case "image":
            return {"type": "image_url", "image_url": {"url": _source(at, block)}}
        case "document":
            file = {"file_data": _source(at, block)}
            if isinstance(block.get("title"), str):
                file["filename"] = block["title"]
            return {"type": "file", "file": file}
        case other:
            raise RequestFieldError(f"{at}.type", f"'{other[:40]}' is not supported here")


def _source(at: str, block: JsonObject) -> str:
    """Return the address of an image or a document, or its content as a `data:` address."""
    source = block.get("source")
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            return url
    raise RequestFieldError(
        f"{at}.source", "must be of the type 'base64' with media_type and data, or 'url' with url"
    )


def _call(at: str, block: JsonObject) -> JsonObject:
    for name in ("id", "name"):
        if not isinstance(block.get(name), str) or not block[name]:
            raise RequestFieldError(f"{at}.{name}", "must be a text")
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        raise RequestFieldError(f"{at}.input", "must be an object")
    function = {"name": block["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": block["id"], "type": "function", "function": function}


def _result(at: str, block: JsonObject) -> JsonObject:
    if not isinstance(block.get("tool_use_id"), str):
        raise RequestFieldError(f"{at}.tool_use_id", "must be the id of a tool_use block")
    content = block.get("content") or ""
    if not isinstance(content, str):
        blocks = _blocks(f"{at}.content", content)
        texts = [_text(f"{at}.content[{index}]", each) for index, each in enumerate(blocks)]
        content = "\n".join(texts)
    if block.get("is_error") and not content:
        content = "error"
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}


def _tool(at: str, tool: Any) -> JsonObject:
    kind = tool.get("type") or "custom" if isinstance(tool, dict) else None
    if kind != "custom":
        raise RequestFieldError(
            f"{at}.type", "must be 'custom'; tools of the runtime are set in the manifest"
        )
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        raise RequestFieldError(f"{at}.name", "must be a text")
    if not isinstance(tool.get("input_schema"), dict):
        raise RequestFieldError(f"{at}.input_schema", "must be a JSON schema")
    function = {"name": tool["name"], "parameters": tool["input_schema"]}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _choice(choice: JsonObject) -> JsonObject:
    kind, name = choice.get("type"), choice.get("name")
    document: JsonObject
    if kind in _CHOICES:
        document = {"tool_choice": _CHOICES[kind]}
    elif kind == "tool" and isinstance(name, str):
        document = {"tool_choice": {"type": "function", "function": {"name": name}}}
    else:
        raise RequestFieldError(
            "tool_choice.type", "must be 'auto', 'any', 'none', or 'tool' with a 'name'"
        )
    if choice.get("disable_parallel_tool_use"):
        document["parallel_tool_calls"] = False
    return document


def _output(wanted: JsonObject) -> JsonObject:
    document: JsonObject = {}
    if wanted.get("effort"):
        document["reasoning_effort"] = wanted["effort"]
    match wanted.get("format"):
        case None:
            pass
        case {"type": "json_schema", "schema": dict(schema)}:
            named = {"name": "answer", "schema": schema, "strict": True}
            document["response_format"] = {"type": "json_schema", "json_schema": named}
        case _:
            raise RequestFieldError("output_config.format", "must be a 'json_schema' with a schema")
    return document

"""Translates requests of the responses API into chat requests; pure functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from caraway_ai.chat.checking import RequestFieldError, check_fields, check_messages, check_model
from caraway_ai.protocols import ChatRequest, JsonObject

_SAME = (
    "temperature", "top_p", "parallel_tool_calls", "user", "service_tier", "prompt_cache_key",
    "safety_identifier",
)  # fmt: skip
_TRANSLATED = frozenset(
    "model input instructions stream store previous_response_id max_output_tokens tools "
    "tool_choice text reasoning metadata".split()
) | frozenset(_SAME)
_HARMLESS: Mapping[str, Callable[[object], bool]] = {
    "background": lambda value: value is False,
    "include": lambda value: value == [],
    "truncation": lambda value: value == "disabled",
    "top_logprobs": lambda value: value == 0,
    "stream_options": lambda _: True,
}
_CHAT_ITEMS = ("message", "function_call", "function_call_output")
"""The items of an earlier response that can be sent as chat messages."""
_TEXT_PARTS = ("input_text", "output_text", "text")


def check_request(body: object) -> JsonObject:
    """Return the request, if it can be one.

    Raises:
        RequestFieldError: it cannot; it names the field.
    """
    request = check_model(body)
    for name, type_, words in (
        ("instructions", str, "a text"), ("store", bool, "true or false"),
        ("stream", bool, "true or false"), ("previous_response_id", str, "the id of a response"),
        ("text", dict, "an object"), ("reasoning", dict, "an object"),
        ("tools", list, "a list"), ("metadata", dict, "an object"),
    ):  # fmt: skip
        if request.get(name) is not None and not isinstance(request[name], type_):
            raise RequestFieldError(name, f"must be {words}")
    return request


def check_native(body: JsonObject) -> None:
    """Check what a request to the responses API of a provider may not have.

    Raises:
        RequestFieldError: it asks for what the provider would have to keep.
    """
    if body.get("background"):
        raise RequestFieldError("background", "is not supported here; leave it out")
    if body.get("conversation") is not None:
        raise RequestFieldError(
            "conversation", "is not supported here; go on from a 'previous_response_id'"
        )
    for index, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            raise RequestFieldError(f"tools[{index}]", "must be an object with a 'type'")
        if tool["type"] == "function" and not isinstance(tool.get("name"), str):
            raise RequestFieldError(f"tools[{index}].name", "must be a text")
    include = body.get("include") or []
    if not isinstance(include, list) or not all(isinstance(each, str) for each in include):
        raise RequestFieldError("include", "must be a list of texts")
    for index, item in enumerate(input_items(body.get("input"))):
        if item.get("type") == "item_reference":
            raise RequestFieldError(
                f"input[{index}].type",
                "'item_reference' is not supported here: the provider keeps no items; send the "
                "item itself, or a 'previous_response_id'",
            )


def input_items(given: object) -> list[JsonObject]:
    """Return an input as a list of items.

    Raises:
        RequestFieldError: it is none.
    """
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise RequestFieldError("input", "must be a text or a list of at least one item")
    for index, item in enumerate(given):
        if not isinstance(item, dict):
            raise RequestFieldError(f"input[{index}]", "must be an object")
    return given


def chat_request(body: JsonObject, before: Sequence[JsonObject] = ()) -> ChatRequest:
    """Return the chat request for a checked request, after the items of an earlier response.

    Raises:
        RequestFieldError: a field is wrong.
    """
    for name, value in body.items():
        if name in _TRANSLATED or value is None:
            continue
        if not (name in _HARMLESS and _HARMLESS[name](value)):
            raise RequestFieldError(name, "is not supported here; leave it out")
    request: ChatRequest = {"model": body["model"]}
    messages: list[JsonObject] = []
    if body.get("instructions"):
        messages.append({"role": "developer", "content": body["instructions"]})
    documents = [item for item in before if item.get("type", "message") in _CHAT_ITEMS]
    messages += [*input_messages(documents), *input_messages(input_items(body.get("input")))]
    for name in _SAME:
        if body.get(name) is not None:
            request[name] = body[name]
    if body.get("max_output_tokens") is not None:
        request["max_completion_tokens"] = body["max_output_tokens"]
    if tools := body.get("tools"):
        request["tools"] = [_tool(f"tools[{index}]", tool) for index, tool in enumerate(tools)]
    if (choice := body.get("tool_choice")) is not None:
        request["tool_choice"] = _choice(choice)
    if effort := (body.get("reasoning") or {}).get("effort"):
        request["reasoning_effort"] = effort
    text = body.get("text") or {}
    if verbosity := text.get("verbosity"):
        request["verbosity"] = verbosity
    if (format_ := _format(text.get("format"))) is not None:
        request["response_format"] = format_
    _check(request, messages)
    request["messages"] = messages
    return request


def _check(request: ChatRequest, messages: list[JsonObject]) -> None:
    """Check a translated request; errors have the names of this API."""
    try:
        check_fields(request)
    except RequestFieldError as exc:
        # Only here are functions below their tools, and the length has another name.
        name = exc.param.replace("max_completion_tokens", "max_output_tokens")
        raise RequestFieldError(name.replace("].function", "]"), _told(exc)) from exc
    try:
        check_messages(messages)
    except RequestFieldError as exc:
        raise RequestFieldError("input", f"as {exc.param}: {_told(exc)}") from exc


def _told(exc: RequestFieldError) -> str:
    return exc.message.removeprefix(f"'{exc.param}' ")


def input_messages(items: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the items of an input as messages.

    Raises:
        RequestFieldError: an item is wrong.
    """
    documents: list[JsonObject] = []
    for index, item in enumerate(items):
        at = f"input[{index}]"
        match item.get("type", "message"):
            case "message":
                documents.append(_message(at, item))
            case "function_call":
                _add_call(at, item, documents)
            case "function_call_output":
                documents.append(_result(at, item))
            case "reasoning":
                pass  # Thoughts of an earlier turn, which the chat wire does not carry.
            case other:
                raise RequestFieldError(f"{at}.type", f"'{str(other)[:40]}' is not supported here")
    return documents


def _message(at: str, item: JsonObject) -> JsonObject:
    role, content = item.get("role"), item.get("content")
    if isinstance(content, list):
        parts = [_part(f"{at}.content[{index}]", part) for index, part in enumerate(content)]
        if parts and all(part["type"] == "text" for part in parts):
            content = "".join(part["text"] for part in parts)
        else:
            content = parts
    return {"role": role, "content": content}


def _part(at: str, part: Any) -> JsonObject:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXT_PARTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": str(part.get("refusal") or "")}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file" and isinstance(part.get("file_data"), str):
        names = ("file_data", "filename")
        return {"type": "file", "file": {name: part[name] for name in names if part.get(name)}}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part.get("input_audio")}
    raise RequestFieldError(
        at, "must be input_text, input_image with an image_url, input_file with file_data, or "
        "input_audio",
    )  # fmt: skip


def _add_call(at: str, item: JsonObject, messages: list[JsonObject]) -> None:
    for name in ("call_id", "name", "arguments"):
        if not isinstance(item.get(name), str):
            raise RequestFieldError(f"{at}.{name}", "must be a text")
    function = {"name": item["name"], "arguments": item["arguments"]}
    call = {"id": item["call_id"], "type": "function", "function": function}
    # Parallel calls, and a text before them, are one message on the chat wire.
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    messages[-1].setdefault("tool_calls", []).append(call)


def _result(at: str, item: JsonObject) -> JsonObject:
    output = item.get("output")
    if isinstance(output, list):
        parts = [_part(f"{at}.output[{index}]", part) for index, part in enumerate(output)]
        output = "".join(part.get("text", "") for part in parts)
    if not isinstance(item.get("call_id"), str) or not isinstance(output, str):
        raise RequestFieldError(at, "must have the texts 'call_id' and 'output'")
    return {"role": "tool", "tool_call_id": item["call_id"], "content": output}


def _tool(at: str, tool: Any) -> JsonObject:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if kind != "function":
        raise RequestFieldError(
            f"{at}.type", "must be 'function'; tools of the runtime are set in the manifest"
        )
    names = ("name", "description", "parameters", "strict")
    function = {name: tool[name] for name in names if tool.get(name) is not None}
    return {"type": "function", "function": function}


def _choice(choice: object) -> object:
    if choice in ("auto", "none", "required"):
        return choice
    if isinstance(choice, dict) and choice.get("type") == "function" and choice.get("name"):
        return {"type": "function", "function": {"name": choice["name"]}}
    raise RequestFieldError(
        "tool_choice",
        "must be 'auto', 'none', 'required', or {\"type\": \"function\", \"name\": ...}",
    )


def _format(wanted: object) -> JsonObject | None:
    if wanted is None or wanted == {"type": "text"}:
        return None
    if wanted == {"type": "json_object"}:
        return {"type": "json_object"}
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        names = ("name", "description", "schema", "strict")
        schema = {name: wanted[name] for name in names if wanted.get(name) is not None}
        return {"type": "json_schema", "json_schema": schema}
    raise RequestFieldError("text.format", "must be of the type text, json_object or json_schema")

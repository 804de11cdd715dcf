"""Checks chat requests before anything is called; what a provider checks better is left to it."""

from collections.abc import Mapping
from typing import Any

from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_core.errors import ModelInputError

MOST_MESSAGES = 500
MOST_CHOICES = 128
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TYPES: Mapping[str, tuple[type, str]] = {
    "stream": (bool, "true or false"),
    "logprobs": (bool, "true or false"),
    "parallel_tool_calls": (bool, "true or false"),
    "stream_options": (dict, "an object"),
    "response_format": (dict, "an object"),
    "logit_bias": (dict, "an object"),
    "metadata": (dict, "an object"),
    "tools": (list, "a list"),
    "functions": (list, "a list"),
    "max_tokens": (int, "a whole number"),
    "max_completion_tokens": (int, "a whole number"),
    "top_logprobs": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "n": (int, "a whole number"),
    "user": (str, "a text"),
}
_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "n": (1, MOST_CHOICES),
    "max_tokens": (1, 10**9),
    "max_completion_tokens": (1, 10**9),
    "top_logprobs": (0, 20),
}


class RequestFieldError(ModelInputError):
    """A field of a request is wrong; `param` is its path."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"'{param}' {message}" if param else message)
        self.param = param


def check_model(body: object) -> JsonObject:
    """Return the fields of a request, which name a model.

    Raises:
        RequestFieldError: it is no object, or names none.
    """
    if not isinstance(body, dict):
        raise RequestFieldError("", "the request body must be a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestFieldError("model", "must be the name of a model; GET /v1/models lists them")
    return body


def check_request(body: object) -> ChatRequest:
    """Return the request, if it can be one.

    Raises:
        RequestFieldError: it cannot; it names the field.
    """
    request = check_model(body)
    check_fields(request)
    if request.get("stream_options") is not None and not request.get("stream"):
        raise RequestFieldError("stream_options", "is only allowed with 'stream': true")
    if request.get("top_logprobs") is not None and not request.get("logprobs"):
        raise RequestFieldError("top_logprobs", "is only allowed with 'logprobs': true")
    check_messages(request.get("messages"))
    return request


def check_fields(body: Mapping[str, Any]) -> None:
    """Check the types and ranges of fields.

    Raises:
        RequestFieldError: one is wrong.
    """
    for name, (type_, words) in _TYPES.items():
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
            raise RequestFieldError(name, f"must be {words}")
    for name, (least, most) in _RANGES.items():
        value = body.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise RequestFieldError(name, f"must be a number from {least} to {most}")
    for index, tool in enumerate(body.get("tools") or ()):
        _check_tool(f"tools[{index}]", tool)


def check_messages(messages: object) -> None:
    """Check the messages of a chat, and that their order makes sense.

    Raises:
        RequestFieldError: one is wrong.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestFieldError("messages", "must be a list of at least one message")
    if len(messages) > MOST_MESSAGES:
        raise RequestFieldError(
            "messages",
            f"has {len(messages)} messages, more than {MOST_MESSAGES}; leave out the oldest, or "
            "replace them with a summary",
        )
    waiting: dict[str, None] = {}
    for index, message in enumerate(messages):
        at = f"messages[{index}]"
        _check_message(at, message)
        if message["role"] == "tool":
            _check_result(at, message, waiting)
            continue
        if waiting:
            raise RequestFieldError(
                at,
                "must be the result of a tool: an assistant message with 'tool_calls' must be "
                f"followed by a message of the role 'tool' for each; missing: {', '.join(waiting)}",
            )
        waiting = dict.fromkeys(_call_ids(at, message))
    if waiting:
        raise RequestFieldError(
            "messages", f"end before the results of tool calls; missing: {', '.join(waiting)}"
        )


def _check_message(at: str, message: object) -> None:
    if not isinstance(message, dict):
        raise RequestFieldError(at, "must be an object with 'role' and 'content'")
    role = message.get("role")
    if role not in _ROLES:
        raise RequestFieldError(f"{at}.role", f"must be one of: {', '.join(_ROLES)}")
    content = message.get("content")
    if content is None:
        others = ("tool_calls", "function_call", "refusal", "audio")
        if role != "assistant" or not any(message.get(name) for name in others):
            raise RequestFieldError(f"{at}.content", "must be a text or a list of parts")
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise RequestFieldError(f"{at}.content", "must be a text or a list of parts")
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise RequestFieldError(f"{at}.content[{index}]", "must be an object with a 'type'")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise RequestFieldError(f"{at}.content[{index}].text", "must be a text")


def _check_result(at: str, message: dict[str, object], waiting: dict[str, None]) -> None:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise RequestFieldError(f"{at}.tool_call_id", "must be the id of a tool call")
    if call_id not in waiting:
        raise RequestFieldError(
            at,
            f"answers the tool call '{call_id[:100]}', which is not one of an assistant message "
            "just before; send that message with its 'tool_calls' first",
        )
    del waiting[call_id]


def _call_ids(at: str, message: dict[str, object]) -> list[str]:
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise RequestFieldError(f"{at}.tool_calls", "must be a list")
    found = []
    for index, call in enumerate(calls):
        here = f"{at}.tool_calls[{index}]"
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
            raise RequestFieldError(f"{here}.id", "must be a text")
        function = call.get("function")
        if call.get("type", "function") == "function" and not (
            isinstance(function, dict)
            and isinstance(function.get("name"), str)
            and isinstance(function.get("arguments"), str)
        ):
            raise RequestFieldError(
                f"{here}.function", "must be an object with 'name' and 'arguments', both texts"
            )
        found.append(call["id"])
    return found


def _check_tool(at: str, tool: object) -> None:
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        raise RequestFieldError(at, "must be an object with a 'type', usually 'function'")
    if tool["type"] != "function":
        return
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RequestFieldError(f"{at}.function", "must be an object with a 'name'")
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise RequestFieldError(f"{at}.function.parameters", "must be a JSON schema")

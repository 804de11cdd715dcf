"""Translates chat requests into those of Anthropic's messages API; pure functions."""

from collections.abc import Iterator

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_ai.providers import translating

PROVIDER = "Anthropic"
_MOST_TOKENS = 4096
_SAME = ("temperature", "top_p", "top_k", "thinking", "cache_control", "container", "speed")
_TRANSLATED = frozenset(
    "messages max_tokens max_completion_tokens stop tools tool_choice parallel_tool_calls "
    "response_format reasoning_effort user service_tier".split()
) | frozenset(_SAME)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def translated(request: ChatRequest, model: str) -> JsonObject:
    """Return the request for the messages API.

    Raises:
        RequestFieldError: it asks for what this API does not have.
    """
    translating.refuse_others(request, _TRANSLATED, PROVIDER)
    body: JsonObject = {
        "model": model,
        "max_tokens": translating.most_tokens(request, _MOST_TOKENS),
        "messages": _messages(request["messages"]),
    }
    for name in _SAME:
        if request.get(name) is not None:
            body[name] = request[name]
    if system := _system(request["messages"]):
        body["system"] = system
    if sequences := translating.stops(request):
        body["stop_sequences"] = sequences
    if request.get("user"):
        body["metadata"] = {"user_id": request["user"]}
    if tier := request.get("service_tier"):
        body["service_tier"] = "auto" if tier == "auto" else "standard_only"
    if tools := _tools(request):
        body["tools"] = tools
        body["tool_choice"] = _tool_choice(request)
    if output := _output(request):
        body["output_config"] = output
    return body


def _output(request: ChatRequest) -> JsonObject:
    document: JsonObject = {}
    if (schema := translating.json_schema_of(request, PROVIDER)) is not None:
        document["format"] = {"type": "json_schema", "schema": schema}
    if effort := request.get("reasoning_effort"):
        if effort not in _EFFORTS:
            raise RequestFieldError("reasoning_effort", f"must be one of: {', '.join(_EFFORTS)}")
        document["effort"] = effort
    return document


def _system(messages: list[JsonObject]) -> str:
    return "\n\n".join(translating.instructions(messages))


def _messages(messages: list[JsonObject]) -> list[JsonObject]:
    documents = translating.turns(messages, _blocks)
    if not documents:
        raise RequestFieldError("messages", "must have a message of the role 'user'")
    return documents


def _blocks(at: str, role: str, message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content")
    if role == "tool":
        text = translating.text_of(at, content)
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}
        return
    if isinstance(content, str):
        if content:
            yield {"type": "text", "text": content}
    else:
        for index, part in enumerate(content or ()):
            yield _part(f"{at}.content[{index}]", part)
    # Of other roles they mean nothing, and were not checked.
    calls = message.get("tool_calls") if role == "assistant" else None
    for index, call in enumerate(calls or ()):
        arguments = translating.arguments_of(f"{at}.tool_calls[{index}]", call)
        yield {"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
               "input": arguments}  # fmt: skip


def _part(at: str, part: JsonObject) -> JsonObject:
    match part["type"]:
        case "text":
            return {"type": "text", "text": part["text"]}
        case "refusal":
            return {"type": "text", "text": str(part.get("refusal") or "")}
        case "image_url":
            url = translating.object_of(at, part, "image_url").get("url")
            return {"type": "image", "source": _source(f"{at}.image_url.url", url)}
        case "file":
            file = translating.object_of(at, part, "file")
            block = {"type": "document",
                     "source": _source(f"{at}.file.file_data", file.get("file_data"))}  # fmt: skip
            return {**block, "title": file["filename"]} if file.get("filename") else block
        case other:
            raise RequestFieldError(
                f"{at}.type", f"'{str(other)[:40]}' is not supported by models of {PROVIDER}"
            )


def _source(at: str, url: object) -> JsonObject:
    data = translating.data_url(at, url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data.media_type, "data": data.base64}


def _tools(request: ChatRequest) -> list[JsonObject]:
    found = []
    for function in translating.functions_of(request, PROVIDER):
        tool: JsonObject = {
            "name": function["name"],
            "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
        }
        if function.get("description"):
            tool["description"] = function["description"]
        if function.get("strict"):
            tool["strict"] = True
        found.append(tool)
    return found


def _tool_choice(request: ChatRequest) -> JsonObject:
    choice = request.get("tool_choice") or "auto"
    kinds = {"auto": "auto", "none": "none", "required": "any"}
    if isinstance(choice, str) and choice in kinds:
        document: JsonObject = {"type": kinds[choice]}
    elif isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        document = {"type": "tool", "name": choice["function"].get("name")}
    else:
        raise RequestFieldError(
            "tool_choice", "must be 'auto', 'none', 'required', or name a function"
        )
    if request.get("parallel_tool_calls") is False and document["type"] != "none":
        document["disable_parallel_tool_use"] = True
    return document

"""Translates chats into Converse of Bedrock and back; pure functions."""

import json
import secrets
import time
from collections.abc import Iterator

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatChunk, ChatCompletion, ChatRequest, JsonObject
from caraway_ai.providers import translating

PROVIDER = "Bedrock"
_TRANSLATED = frozenset(
    "messages max_tokens max_completion_tokens temperature top_p top_k stop tools "
    "tool_choice".split()
)
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def translated(request: ChatRequest, model: str) -> JsonObject:
    """Return the arguments of Converse.

    Raises:
        RequestFieldError: the request asks for what Converse does not have.
    """
    others = {k: v for k, v in request.items() if (k, v) != ("parallel_tool_calls", True)}
    translating.refuse_others(others, _TRANSLATED, PROVIDER)
    messages = request["messages"]
    body: JsonObject = {"modelId": model, "messages": _messages(messages)}
    if system := _system(messages):
        body["system"] = system
    inference: JsonObject = {}
    if request.get("max_completion_tokens") or request.get("max_tokens"):
        inference["maxTokens"] = translating.most_tokens(request, 0)
    if request.get("temperature") is not None:
        inference["temperature"] = request["temperature"]
    if request.get("top_p") is not None:
        inference["topP"] = request["top_p"]
    if sequences := translating.stops(request):
        inference["stopSequences"] = sequences
    if inference:
        body["inferenceConfig"] = inference
    if request.get("top_k") is not None:
        body["additionalModelRequestFields"] = {"top_k": request["top_k"]}
    if tools := _tools(request):
        body["toolConfig"] = tools
    return body


def completion(answer: JsonObject) -> ChatCompletion:
    """Return a whole answer.

    Raises:
        KeyError, TypeError: it is not one.
    """
    texts, calls = [], []
    for block in answer["output"]["message"]["content"]:
        if "text" in block:
            texts.append(block["text"])
        elif "toolUse" in block:
            use = block["toolUse"]
            function = {"name": use["name"], "arguments": json.dumps(use["input"])}
            calls.append({"id": use["toolUseId"], "type": "function", "function": function})
    message: JsonObject = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        message["tool_calls"] = calls
    reason = _REASONS.get(answer["stopReason"], "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {**_head(), "object": "chat.completion", "choices": [choice],
            "usage": usage(answer["usage"])}  # fmt: skip


def usage(counts: JsonObject) -> JsonObject:
    """Return the counts of tokens."""
    prompt, said = counts.get("inputTokens") or 0, counts.get("outputTokens") or 0
    cached = counts.get("cacheReadInputTokens") or 0
    return {
        "prompt_tokens": prompt, "completion_tokens": said,
        "total_tokens": counts.get("totalTokens") or prompt + said,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip


class ConverseStream:
    """Translates the events of one stream."""

    def __init__(self) -> None:
        self._head = _head()
        self._calls: dict[int, int] = {}
        self._silent: set[int] = set()

    def chunks_of_event(self, event: JsonObject) -> Iterator[ChatChunk]:
        """Yield the chunks of one event.

        Raises:
            KeyError, TypeError: the event is damaged.
        """
        match event:
            case {"messageStart": _}:
                yield self._chunk({"role": "assistant", "content": ""})
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": use}}}:
                self._calls[index] = len(self._calls)
                self._silent.add(index)
                head = {"id": use["toolUseId"], "type": "function"}
                yield self._call(index, {"name": use["name"], "arguments": ""}, head)
            case {"contentBlockDelta": {"delta": {"text": text}}}:
                yield self._chunk({"content": text})
            case {"contentBlockDelta": {"delta": {"reasoningContent": {"text": text}}}}:
                yield self._chunk({"reasoning_content": text})
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": use}}}:
                if use["input"]:
                    self._silent.discard(index)
                    yield self._call(index, {"arguments": use["input"]})
            case {"contentBlockStop": {"contentBlockIndex": index}} if index in self._silent:
                # A call without arguments has no deltas there; here they are an empty object.
                yield self._call(index, {"arguments": "{}"})
            case {"messageStop": {"stopReason": reason}}:
                yield self._chunk({}, _REASONS.get(reason, "stop"))
            case {"metadata": {"usage": counts}}:
                yield {**self._chunk({}), "choices": [], "usage": usage(counts)}

    def _call(self, index: int, function: JsonObject, head: JsonObject | None = None) -> ChatChunk:
        call = {"index": self._calls[index], **(head or {}), "function": function}
        return self._chunk({"tool_calls": [call]})

    def _chunk(self, delta: JsonObject, reason: str | None = None) -> ChatChunk:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def _head() -> JsonObject:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time())}


def _system(messages: list[JsonObject]) -> list[JsonObject]:
    return [{"text": text} for text in translating.instructions(messages)]


def _messages(messages: list[JsonObject]) -> list[JsonObject]:
    documents = translating.turns(messages, _blocks)
    if not documents or documents[0]["role"] != "user":
        raise RequestFieldError("messages", f"of models of {PROVIDER} must begin with the user")
    return documents


def _blocks(at: str, role: str, message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content")
    if role == "tool":
        text = translating.text_of(at, content)
        yield {"toolResult": {"toolUseId": message["tool_call_id"], "content": [{"text": text}]}}
        return
    if isinstance(content, str):
        if content:
            yield {"text": content}
    else:
        for index, part in enumerate(content or ()):
            yield _part(f"{at}.content[{index}]", part)
    # Of other roles they mean nothing, and were not checked.
    calls = message.get("tool_calls") if role == "assistant" else None
    for index, call in enumerate(calls or ()):
        arguments = translating.arguments_of(f"{at}.tool_calls[{index}]", call)
        yield {"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"],
                           "input": arguments}}  # fmt: skip


def _part(at: str, part: JsonObject) -> JsonObject:
    if part["type"] in ("text", "refusal"):
        return {"text": str(part.get("text") or part.get("refusal") or "")}
    if part["type"] == "image_url":
        where = f"{at}.image_url.url"
        data = translating.data_url(where, translating.object_of(at, part, "image_url").get("url"))
        kind = "" if data is None else data.media_type.removeprefix("image/")
        if data is None or kind not in ("png", "jpeg", "gif", "webp"):
            raise RequestFieldError(where, "must be 'data:image/<png|jpeg|gif|webp>;base64,...'")
        return {"image": {"format": kind, "source": {"bytes": data.content}}}
    raise RequestFieldError(
        f"{at}.type", f"'{str(part['type'])[:40]}' is not supported by models of {PROVIDER}"
    )


def _tools(request: ChatRequest) -> JsonObject | None:
    functions = translating.functions_of(request, PROVIDER)
    if not functions:
        return None
    choice: object = request.get("tool_choice") or "auto"
    specs = []
    for function in functions:
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        spec: JsonObject = {"name": function["name"], "inputSchema": {"json": schema}}
        if function.get("description"):
            spec["description"] = function["description"]
        specs.append({"toolSpec": spec})
    if choice in ("auto", "required"):
        kind: JsonObject = {"auto": {}} if choice == "auto" else {"any": {}}
    elif isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        kind = {"tool": {"name": choice["function"].get("name")}}
    else:
        raise RequestFieldError(
            "tool_choice", f"of models of {PROVIDER} must be 'auto', 'required', or name a "
            "function; for 'none' leave 'tools' out",
        )  # fmt: skip
    return {"tools": specs, "toolChoice": kind}

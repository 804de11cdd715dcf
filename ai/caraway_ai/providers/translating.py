"""Shared parts of adapters of providers with a wire of their own: refusals of fields."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_ai.chat.checking import RequestFieldError
from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_core.json_texts import strict_json

INSTRUCTING = ("system", "developer")
"""The roles of messages that instruct the model."""
Blocks = Callable[[str, str, JsonObject], Iterable[JsonObject]]
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)


def _is_off(value: object) -> bool:
    return value in (False, 0, None, {}, [], "")


_HARMLESS: Mapping[str, Callable[[object], bool]] = {
    "n": lambda value: value == 1,
    "logprobs": _is_off,
    "top_logprobs": _is_off,
    "logit_bias": _is_off,
    "frequency_penalty": _is_off,
    "presence_penalty": _is_off,
    "modalities": lambda value: value == ["text"],
    "response_format": lambda value: isinstance(value, dict) and value.get("type") == "text",
    "store": _is_off,
    "metadata": _is_off,
    "verbosity": lambda value: value == "medium",
    "service_tier": lambda value: value == "auto",
    "prompt_cache_key": lambda _: True,
    "prompt_cache_retention": lambda _: True,
    "safety_identifier": lambda _: True,
    "user": lambda _: True,
    "stream": lambda _: True,
    "stream_options": lambda _: True,
    "model": lambda _: True,
}
"""Fields that may be left out of a translation where their value asks for nothing."""


def refuse_others(request: ChatRequest, translated: frozenset[str], provider: str) -> None:
    """Refuse what a provider cannot do, by the name of the field.

    Raises:
        RequestFieldError: a field asks for something that is not translated.
    """
    for name, value in request.items():
        if name in translated or value is None:
            continue
        if not (name in _HARMLESS and _HARMLESS[name](value)):
            raise RequestFieldError(name, f"is not supported by models of {provider}; leave it out")


def json_schema_of(request: ChatRequest, provider: str) -> JsonObject | None:
    """Return the schema that `response_format` asks for, if it does.

    Raises:
        RequestFieldError: it asks for something else than text or a schema.
    """
    wanted = request.get("response_format") or {"type": "text"}
    if wanted.get("type") == "text":
        return None
    inner = wanted.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if wanted.get("type") != "json_schema" or not isinstance(schema, dict):
        raise RequestFieldError(
            "response_format", f"of models of {provider} must be a 'json_schema' with a 'schema'"
        )
    return schema


def most_tokens(request: ChatRequest, default: int) -> int:
    """Return how long an answer may be."""
    return int(request.get("max_completion_tokens") or request.get("max_tokens") or default)


def stops(request: ChatRequest) -> list[str]:
    """Return the sequences that end an answer.

    Raises:
        RequestFieldError: they are not texts.
    """
    stop = request.get("stop")
    if stop is None or stop == "":
        return []
    found = [stop] if isinstance(stop, str) else stop
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise RequestFieldError("stop", "must be a text or a list of texts")
    return found


@dataclass(frozen=True, slots=True)
class DataUrl:
    """A file inside a URL."""

    media_type: str
    base64: str

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.base64)


def data_url(at: str, text: object) -> DataUrl | None:
    """Return the file inside a URL, or None where it is an address.

    Raises:
        RequestFieldError: it is neither.
    """
    if not isinstance(text, str):
        raise RequestFieldError(at, "must be a URL")
    match = _DATA_URL.match(text)
    if match is None:
        if text.startswith("https://") or text.startswith("http://"):
            return None
        raise RequestFieldError(at, "must be an address or 'data:<type>;base64,...'")
    url = DataUrl(match[1], text[match.end() :])
    try:
        base64.b64decode(url.base64, validate=True)
    except (binascii.Error, ValueError):
        raise RequestFieldError(at, "holds no valid base64") from None
    return url


def object_of(at: str, part: JsonObject, name: str) -> JsonObject:
    """Return the object in a part of a message that holds what the part is about.

    Raises:
        RequestFieldError: it is none.
    """
    found = part.get(name)
    if not isinstance(found, dict):
        raise RequestFieldError(f"{at}.{name}", "must be an object")
    return found


def text_of(at: str, content: Any) -> str:
    """Return a content that must be text.

    Raises:
        RequestFieldError: it has other parts.
    """
    if isinstance(content, str):
        return content
    texts = []
    for index, part in enumerate(content or ()):
        if part.get("type") not in ("text", "refusal"):
            raise RequestFieldError(f"{at}.content[{index}]", "must be text in this role")
        texts.append(str(part.get("text") or part.get("refusal") or ""))
    return "\n".join(texts)


def turns(messages: Sequence[JsonObject], blocks: Blocks) -> list[JsonObject]:
    """Return messages in which the user and the model take turns; instructions are left out.

    `blocks` returns the content of a message at a place, of a role. Messages of one speaker become
    one: the results of parallel calls, and what the user says to them.

    Raises:
        RequestFieldError: a message is of a role that is out of use.
    """
    documents: list[JsonObject] = []
    for index, message in enumerate(messages):
        at, role = f"messages[{index}]", message["role"]
        if role in INSTRUCTING:
            continue
        if role == "function":
            raise RequestFieldError(f"{at}.role", "must not be 'function'; use 'tool'")
        speaker = "assistant" if role == "assistant" else "user"
        content = list(blocks(at, role, message))
        if documents and documents[-1]["role"] == speaker:
            documents[-1]["content"] += content
        elif content:
            documents.append({"role": speaker, "content": content})
    return documents


def instructions(messages: Sequence[JsonObject]) -> list[str]:
    """Return the texts of messages that instruct the model."""
    return [
        text_of(f"messages[{index}]", message["content"])
        for index, message in enumerate(messages)
        if message["role"] in INSTRUCTING
    ]


def arguments_of(at: str, call: Mapping[str, Any]) -> JsonObject:
    """Return the arguments of a tool call as an object.

    Raises:
        RequestFieldError: they are not JSON of one, or the call is of another type.
    """
    if call.get("type", "function") != "function":
        raise RequestFieldError(f"{at}.type", "must be 'function'")
    text = call["function"]["arguments"]
    try:
        found = strict_json.parse(text) if text.strip() else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RequestFieldError(f"{at}.function.arguments", "must be a JSON object as a text")
    return found


def functions_of(request: ChatRequest, provider: str) -> Sequence[JsonObject]:
    """Return the functions that a request offers.

    Raises:
        RequestFieldError: a tool is of another type.
    """
    found = []
    for index, tool in enumerate(request.get("tools") or ()):
        if tool["type"] != "function":
            raise RequestFieldError(
                f"tools[{index}].type", f"must be 'function' for models of {provider}"
            )
        found.append(tool["function"])
    return found

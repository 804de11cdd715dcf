"""Adds to a request of the responses API what the manifest sets for its model."""

from collections.abc import Mapping
from typing import Any

from caraway_ai.protocols import JsonObject

_SAME = (
    "temperature", "top_p", "top_logprobs", "parallel_tool_calls", "service_tier",
    "prompt_cache_key", "metadata", "user",
)  # fmt: skip
_LENGTHS = ("max_completion_tokens", "max_tokens")


def prepared(
    request: JsonObject, defaults: Mapping[str, object], system_prompt: str | None
) -> JsonObject:
    """Return the request with the defaults that this API has, and the system prompt first."""
    full = _given(request)
    for name in _SAME:
        if name in defaults:
            full.setdefault(name, defaults[name])
    for name in _LENGTHS:
        if name in defaults:
            full.setdefault("max_output_tokens", defaults[name])
    if "tool_choice" in defaults:
        full.setdefault("tool_choice", _flat(defaults["tool_choice"], "function"))
    if "reasoning_effort" in defaults:
        reasoning = _given(full.get("reasoning", {}))
        full["reasoning"] = {"effort": defaults["reasoning_effort"], **reasoning}
    text = _given(full.get("text", {}))
    if "verbosity" in defaults:
        text.setdefault("verbosity", defaults["verbosity"])
    if "response_format" in defaults:
        text.setdefault("format", _flat(defaults["response_format"], "json_schema"))
    if text:
        full["text"] = text
    if system_prompt:
        given = full["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        full["input"] = [{"role": "system", "content": system_prompt}, *items]
    return full


def _given(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields that were not left out; null is as good as nothing."""
    return {key: value for key, value in fields.items() if value is not None}


def _flat(value: object, inner: str) -> object:
    """Return an object of the chat wire, which nests what this API has at the top."""
    if isinstance(value, dict) and isinstance(value.get(inner), dict):
        return {"type": value.get("type", inner), **value[inner]}
    return value

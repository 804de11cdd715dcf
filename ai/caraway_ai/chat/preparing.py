"""Adds to a request what the manifest sets for its model; pure functions."""

from collections.abc import Mapping

from caraway_ai.protocols import ChatRequest

_LENGTHS = ("max_completion_tokens", "max_tokens")


def prepared(
    request: ChatRequest, defaults: Mapping[str, object], system_prompt: str | None
) -> ChatRequest:
    """Return the request with the defaults of the manifest, and its system prompt first."""
    full = {key: value for key, value in request.items() if value is not None}
    has_length = any(name in full for name in _LENGTHS)
    for name, value in defaults.items():
        if not (name in _LENGTHS and has_length):
            full.setdefault(name, value)
    if system_prompt:
        prompt = {"role": "system", "content": system_prompt}
        full["messages"] = [prompt, *request.get("messages", ())]
    return full

"""Providers of models for tests: real servers that speak the wires of providers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llmock.testing import LLMockServer

from caraway_ai.protocols import ChatModel
from caraway_ai.specs import ModelSpec

USER = [{"role": "user", "content": "Say hello"}]
KEY = "sk-a-secret-key"


@contextmanager
def llmock(**settings: Any) -> Iterator[LLMockServer]:
    """Run an llmock server until the block ends."""
    with LLMockServer(**settings) as server:
        yield server


def built(provider: str, endpoint: str, model: str = "gpt-4o", **params: str) -> ChatModel:
    """Build a model of a provider at an endpoint; retries are off unless a param says more."""
    key = (
        {f"{provider}_api_key": KEY} if provider != "perplexity" else {"perplexity_auth_token": KEY}
    )
    full = {"endpoint": endpoint, "max_retries": "0", **key, **params}
    return ModelSpec("m", provider, model, full).build()


def manifest(endpoint: str, *more: str) -> str:
    """Return the section `models` with one model, `chat`; `more` are lines of its params."""
    lines = [f"endpoint: {endpoint}", f"openai_api_key: {KEY}", "max_retries: 0", *more]
    params = "".join(f"      {line}\n" for line in lines)
    return f"models:\n  - from: openai:gpt-4o\n    name: chat\n    params:\n{params}"

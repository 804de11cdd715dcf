"""Providers of models for tests: real servers that speak the wires of providers."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import openai
from llmock.testing import LLMockServer

from caraway_ai.protocols import ChatModel
from caraway_ai.specs import ModelSpec
from caraway_assist.models.service import Models
from caraway_core import manifest as manifests
from caraway_core.ids import NodeId
from caraway_gateway.composition import app, security
from caraway_gateway.services import Services
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_serving.limits import InForce
from caraway_serving.tallies import ApiTallies
from tests.kit.listening import listening

USER: Any = [{"role": "user", "content": "Say hello"}]
KEY = "sk-a-secret-key"


@contextmanager
def llmock(**settings: Any) -> Iterator[LLMockServer]:
    """Run an llmock server until the block ends."""
    with LLMockServer(**settings) as server:
        yield server


def built(provider: str, endpoint: str, model: str = "gpt-4o", **params: str) -> ChatModel:
    """Build a model of a provider at an endpoint; retries are off unless a param says more."""
    names = {"perplexity": "perplexity_auth_token", "databricks": "databricks_token"}
    key = {names.get(provider, f"{provider}_api_key"): KEY}
    full = {"endpoint": endpoint, "max_retries": "0", **key, **params}
    return ModelSpec("m", provider, model, full).build()


def manifest(endpoint: str, *more: str) -> str:
    """Return the section `models` with one model, `chat`; `more` are lines of its params."""
    lines = [f"endpoint: {endpoint}", f"openai_api_key: {KEY}", "max_retries: 0", *more]
    params = "".join(f"      {line}\n" for line in lines)
    return f"models:\n  - from: openai:gpt-4o\n    name: chat\n    params:\n{params}"


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The API of a scheduler that has models only, on a real port, with an `openai` client."""

    models: Models
    history: TaskHistory
    tallies: ApiTallies
    url: str
    client: openai.AsyncOpenAI


@asynccontextmanager
async def served(folder: Path, text: str, key: str = "none") -> AsyncIterator[ServedModels]:
    """Serve the models of a manifest until the block ends; there is no engine."""
    path = folder / "caraway.yaml"
    path.write_text("version: v1\nname: test\n" + text)
    loaded = manifests.load(path)
    secrets = manifests.build_resolver(loaded, {})
    captures = loaded.runtime.task_history.captured_output != "none"
    settings = HistorySettings(captures_output=captures)
    history = TaskHistory(settings, NodeId("node"), time.time_ns)
    state = SqliteStateStore(folder / "state.db", poll_s=0.02)
    models, tallies = Models(folder / "models", history, state), ApiTallies()
    services = SimpleNamespace(
        models=models, keyring=security.keyring(loaded, secrets), limits=InForce(),
        tallies=tallies, is_stopping=False, max_body_bytes=2**27, body_memory_bytes=2**28,
    )  # fmt: skip
    await models.apply(loaded, secrets)
    await models.wait_settled()
    application = app.build_api(cast(Services, services))
    try:
        async with (
            listening(application) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        ):
            yield ServedModels(models, history, tallies, url, client)
    finally:
        await models.aclose()
        await state.aclose()

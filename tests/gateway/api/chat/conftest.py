from collections.abc import Iterator

import pytest
from llmock.testing import LLMockServer

from tests.kit.models import llmock


@pytest.fixture(scope="module")
def provider() -> Iterator[LLMockServer]:
    """A provider of models, without faults at the start of each test."""
    with llmock() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(provider: LLMockServer) -> None:
    provider.state.scenarios.clear()

import pytest

from caraway_core.loading import registry
from tests.assist.models.scripted_models import ScriptedBuilds


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> ScriptedBuilds:
    """What takes the place of every model provider."""
    scripted = ScriptedBuilds()
    monkeypatch.setattr(registry.MODEL_PROVIDERS, "load", lambda _name: scripted)
    return scripted

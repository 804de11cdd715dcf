from collections.abc import Iterator

import pytest

from tests.client.runtime import FakeRuntime, running


@pytest.fixture
def runtime() -> Iterator[FakeRuntime]:
    with running() as fake:
        yield fake


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARAWAY_ENDPOINT", "CARAWAY_API_KEY", "CARAWAY_CACERT", "CARAWAY_DEBUG"):
        monkeypatch.delenv(name, raising=False)

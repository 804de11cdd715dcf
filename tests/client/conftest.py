import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.runtime import FakeRuntime, running


@pytest.fixture
def runtime() -> Iterator[FakeRuntime]:
    with running() as fake:
        yield fake


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("CARAWAY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

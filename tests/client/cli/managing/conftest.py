from pathlib import Path

import pytest

from tests.client.cli.conftest import Command
from tests.client.management.conftest import installation, management, served, token, url

__all__ = ["installation", "management", "served", "token", "url"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, which is empty."""
    made = tmp_path / "work"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def signed_in(caraway: Command, url: str, token: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line with the service and the token in variables."""
    monkeypatch.setenv("CARAWAY_MANAGEMENT_URL", url)
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", token)
    return caraway

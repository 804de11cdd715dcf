"""The commands that prepare an installation."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from caraway_core.errors import CarawayError
from caraway_core.settings import ManagementOptions
from caraway_management import command
from caraway_management.store import migrations


def test_migrating_needs_no_keys_and_serves_what_starts_next(
    database_url: URL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database_url.render_as_string(hide_password=False)
    options = ManagementOptions(data_dir=tmp_path / "unused", database=url)
    for _ in range(2):
        assert command.migrate(options) == 0
        head = migrations.scripts().get_current_head()
        assert json.loads(capsys.readouterr().out) == {"revision": head}
    assert not options.data_dir.exists()
    with pytest.raises(CarawayError, match="no keys"):
        command.initialize(options, "acme")

    keys = tmp_path / "keys"
    keys.write_text(f"one:{'A' * 43}=\n")
    assert command.initialize(replace(options, key_file=keys), "acme") == 0
    assert "token" in json.loads(capsys.readouterr().out)

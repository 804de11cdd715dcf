"""The backup of an embedded database, as docs/operate/management.md describes it."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.settings import ManagementOptions
from caraway_management import command

DATABASE, KEYS = "management.db", "management.keys"


def test_a_backup_is_restored_with_its_keys_and_not_without(tmp_path: Path) -> None:
    lost, restored = tmp_path / "lost", tmp_path / "restored"
    assert command.initialize(ManagementOptions(data_dir=lost), "acme") == 0
    assert command.rotate_keys(ManagementOptions(data_dir=lost)) == 0
    restored.mkdir()
    with (
        contextlib.closing(sqlite3.connect(lost / DATABASE)) as source,
        contextlib.closing(sqlite3.connect(restored / DATABASE)) as target,
    ):
        source.backup(target)
    options = ManagementOptions(data_dir=restored)

    with pytest.raises(CarawayError, match=r"key-encryption key .* is missing"):
        command.initialize(options, "other")
    shutil.copy(lost / KEYS, restored / KEYS)
    with pytest.raises(CarawayError, match="has been initialized"):
        command.initialize(options, "acme")
    assert command.rotate_keys(options) == 0

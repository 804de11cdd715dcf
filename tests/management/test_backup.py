"""Backup and restore, as docs/operate/management.md describes them."""

import contextlib
import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.settings import ManagementOptions
from caraway_management import command
from caraway_management.deployers.local.folder import Plan, ProjectFolder
from caraway_management.sealing import keys
from tests.kit import management, postgres

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


def test_a_dump_of_postgresql_is_restored_with_its_keys(
    tmp_path: Path, postgres_server: postgres.Server
) -> None:
    lost, restored = (management.new_postgres_url(postgres_server) for _ in range(2))
    key_file, dump = tmp_path / "keys", tmp_path / "caraway.dump"
    key_file.write_text(keys.new_line())

    def options(database: object) -> ManagementOptions:
        url = database.render_as_string(hide_password=False)  # type: ignore[attr-defined]
        return ManagementOptions(data_dir=tmp_path, database=url, key_file=key_file)

    assert command.initialize(options(lost), "acme") == 0
    assert command.rotate_keys(options(lost)) == 0
    place = ["--host", postgres_server.params["pg_host"], "--username", "postgres"]
    for words in (
        ["pg_dump", "--format=custom", f"--file={dump}", str(lost.database)],
        ["pg_restore", "--clean", "--if-exists", "--no-owner", f"--dbname={restored.database}",
         str(dump)],
    ):  # fmt: skip
        subprocess.run([postgres.program(words[0]), *place, *words[1:]], check=True)

    with pytest.raises(CarawayError, match="has been initialized"):
        command.initialize(options(restored), "acme")
    assert command.rotate_keys(options(restored)) == 0


def test_runtimes_that_a_restored_database_does_not_know_are_shown_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ManagementOptions(data_dir=tmp_path)
    assert command.initialize(options, "acme") == 0
    folder = ProjectFolder(tmp_path / "projects" / "7")
    folder.path.mkdir(parents=True)
    folder.write_plan(Plan(7, 41, is_running=True, ports=(1, 2, 3)))
    capsys.readouterr()

    assert command.strays(options, removes=False) == 0
    assert json.loads(capsys.readouterr().out) == {"strays": [7]}
    plan = folder.read_plan()
    assert plan is not None and plan.is_running
    assert command.strays(options, removes=True) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": [7]}
    plan = folder.read_plan()
    assert plan is not None and plan.is_removed

"""Folders for spilled rows, as processes that live and die leave them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_engine.execution import contexts, spilling
from caraway_engine.execution.settings import EngineSettings

HOLDS = """
import pathlib, sys
from caraway_engine.execution import spilling
folder = spilling.folder(pathlib.Path(sys.argv[1]))
(folder / "rows.arrow").write_bytes(b"spilled")
print(folder, flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(parent: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    command = [sys.executable, "-c", HOLDS, str(parent)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_folders_of_dead_processes_go_and_those_of_others_stay(tmp_path: Path) -> None:
    foreign = tmp_path / "somebody-elses"
    foreign.mkdir()
    with holder(tmp_path) as (lives, kept), holder(tmp_path) as (dies, left_over):
        assert kept.is_dir() and left_over.is_dir() and kept != left_over
        dies.send_signal(signal.SIGKILL)
        dies.wait()
        assert left_over.is_dir()
        own = spilling.folder(tmp_path)
        assert not left_over.exists()
        assert (kept / "rows.arrow").is_file() and lives.poll() is None
        assert own.is_dir() and spilling.folder(tmp_path) == own
    assert foreign.is_dir()


def test_contexts_of_a_process_spill_into_its_folder(tmp_path: Path) -> None:
    settings = EngineSettings(1, 32_000_000, tmp_path)
    context = contexts.new(settings, 1, contexts.Pools(settings).main, measured=True)
    sql = "SELECT value AS v, value + 1 AS w FROM generate_series(1, 4000000) ORDER BY -value"
    stream = context.sql(sql).execute_stream()
    next(stream)
    own = spilling.folder(tmp_path)
    assert [path for path in tmp_path.iterdir() if path != own] == []
    assert any(path.is_file() for path in own.rglob("*"))


def test_where_no_folder_can_be_made_the_engine_still_starts(tmp_path: Path) -> None:
    in_the_way = tmp_path / "a-file"
    in_the_way.write_text("")
    assert spilling.folder(in_the_way) == in_the_way
    assert os.listdir(tmp_path) == ["a-file"]

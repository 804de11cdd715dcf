"""Programs end with the process that started them."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

from caraway_core.ray_nodes import (
    tied,
)
from tests.kit.deadlines import until
from tests.kit.ray_cluster import MARK, marked


def test_program_is_tied_to_its_parent(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "print('it ran')"]
    ran = subprocess.run(tied.tied(program), capture_output=True, text=True, timeout=60)
    assert ran.stdout == "it ran\n"
    orphan = [*tied.tied(program)]
    orphan[5] = "1"  # Its parent ended, and it was reparented.
    refused = subprocess.run(orphan, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "has ended" in refused.stderr


def test_guard_kills_the_whole_group_of_a_program_when_it_is_orphaned(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    # A program that dies at once when killed, and a child that would survive it.
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    parent = (
        "import subprocess, sys, time; from caraway_core.ray_nodes import tied; "
        f"program = [sys.executable, '-c', {program!r}]; "
        "subprocess.Popen(tied.guarded(program), stdin=subprocess.PIPE, start_new_session=True)"
        ".wait()"
    )
    started = subprocess.Popen([sys.executable, "-c", parent], env={**os.environ, MARK: mark})
    until(lambda: len(marked(mark)) == 4, "all of them run")
    started.kill()
    started.wait(60)
    until(lambda: not marked(mark), "no process is left")


def test_guard_hands_on_signals_and_the_exit_code() -> None:
    program = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
        "print('up', flush=True); signal.pause()"
    )
    guard = subprocess.Popen(
        tied.guarded([sys.executable, "-c", program]), stdout=subprocess.PIPE, text=True
    )
    assert guard.stdout is not None
    assert guard.stdout.readline() == "up\n"
    guard.terminate()
    assert guard.wait(60) == 7
    guard.stdout.close()

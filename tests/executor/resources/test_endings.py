"""Each process of an executor reports its end to the next one."""

import subprocess
import sys
from pathlib import Path

import pytest

from caraway_core.suspects import End
from caraway_executor.resources.endings import Ending

_FAULTS = """
import ctypes, sys
from pathlib import Path
from caraway_executor.resources.endings import Ending
assert Ending(Path(sys.argv[1])).begin_process() is None
{fault}
"""


def ended(path: Path, fault: str) -> None:
    subprocess.run([sys.executable, "-c", _FAULTS.format(fault=fault), str(path)], check=False)


def begun(path: Path) -> End | None:
    """Begin in a process of its own: here pytest has its own way with faults."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from caraway_executor.resources.endings import Ending\n"
        "end = Ending(Path(sys.argv[1])).begin_process()\nprint(end.cause if end else '')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()
    return End(told) if told else None  # type: ignore[arg-type] # a cause


@pytest.mark.parametrize("fault", ["ctypes.string_at(0)", "import os; os.abort()"])
def test_a_fault_of_native_code_is_told_to_the_next_process(tmp_path: Path, fault: str) -> None:
    ended(tmp_path / "last-end", fault)
    assert begun(tmp_path / "last-end") == End("crash")
    assert (tmp_path / "last-end.trace").read_text()
    assert begun(tmp_path / "last-end") is None


@pytest.mark.parametrize("fault", ["", "import os; os.kill(os.getpid(), 9)", "raise SystemExit(1)"])
def test_what_ends_otherwise_leaves_nothing(tmp_path: Path, fault: str) -> None:
    ended(tmp_path / "last-end", fault)
    assert begun(tmp_path / "last-end") is None


def test_who_ends_a_process_says_why(tmp_path: Path) -> None:
    Ending(tmp_path / "last-end").write(End("memory", "it used 2.0 GiB"))
    assert begun(tmp_path / "last-end") == End("memory")

"""Output that is diverted to a file: that of Python, and that of native libraries."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_PROGRAM = """
import os, sys
from pathlib import Path
from caraway_core.ray_nodes.output import diverted

print("before", flush=True)
try:
    with diverted(Path(sys.argv[1])) as user:
        print("of python")
        sys.stderr.write("to stderr\\n")
        os.write(2, b"of a library\\n")
        user.write("for the user \\udc80\\n")
        user.flush()
        {end}
except RuntimeError:
    pass
print("after", flush=True)
os.write(2, b"library after\\n")
"""


def run(file: Path, end: str = "pass") -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(_PROGRAM.format(end=end))
    return subprocess.run(
        [sys.executable, "-c", program, str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("end", ["pass", "raise RuntimeError"])
def test_users_see_none_of_it_and_all_of_what_comes_after(tmp_path: Path, end: str) -> None:
    file = tmp_path / "new" / "ray.log"
    done = run(file, end)
    assert (done.returncode, done.stdout) == (0, "before\nafter\n")
    assert done.stderr == "for the user \\udc80\nlibrary after\n"
    assert sorted(file.read_text().splitlines()) == ["of a library", "of python", "to stderr"]


def test_file_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "ray.log"
    file.write_text("earlier\n")
    assert run(file).returncode == 0
    assert file.read_text().startswith("earlier\n") and "of python" in file.read_text()


def test_file_that_cannot_be_opened_leaves_the_output_as_it_was(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1 and "IsADirectoryError" in done.stderr
    assert done.stdout == "before\n"


_COUNTING = """
import os, sys
from pathlib import Path
from caraway_core.ray_nodes.output import diverted

before = len(os.listdir("/proc/self/fd"))
for _ in range(50):
    with diverted(Path(sys.argv[1])):
        pass
print(len(os.listdir("/proc/self/fd")) - before)
"""


def test_no_file_stays_open(tmp_path: Path) -> None:
    program = [sys.executable, "-c", _COUNTING, str(tmp_path / "ray.log")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"

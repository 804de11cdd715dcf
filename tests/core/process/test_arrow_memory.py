"""The limit for what Arrow allocates in a process."""

import subprocess
import sys

import pyarrow as pa

from caraway_core.process import arrow_memory

LIMITED = """
import os, subprocess, sys
before = dict(os.environ)
from caraway_core.process import arrow_memory
with arrow_memory.limited(256 << 20):
    import json
assert before == dict(os.environ)
with arrow_memory.limited(256 << 20):
    import pyarrow as pa
assert before == dict(os.environ)

held = pa.allocate_buffer(100 << 20)
for size_bytes in (160 << 20, 1 << 40):
    try:
        pa.allocate_buffer(size_bytes)
    except pa.ArrowMemoryError:
        print("refused")
del held
print(pa.allocate_buffer(160 << 20).size)
"""


def test_arrow_is_refused_more_than_the_limit_in_all_and_other_processes_have_none() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["refused", "refused", str(160 << 20)]


def test_a_process_that_has_imported_arrow_stays_without_a_limit() -> None:
    with arrow_memory.limited(1):
        assert pa.allocate_buffer(64 << 20).size == 64 << 20

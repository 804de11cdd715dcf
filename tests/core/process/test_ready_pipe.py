"""A process tells its parent that it is ready: one line of JSON, and the end of the pipe."""

import json
import os
from pathlib import Path

import pytest

from caraway_core.process import ready_pipe


def test_facts_are_one_line_of_texts_and_the_pipe_is_closed() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe:
        ready_pipe.write(writing, {"port": 8090, "folder": Path("/a\n")})
        line, *rest = pipe.read().splitlines()
    assert json.loads(line) == {"port": "8090", "folder": "/a\n"}
    assert rest == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(writing, b"x")


def test_without_a_pipe_nothing_is_written() -> None:
    ready_pipe.write(None, {"port": 8090})

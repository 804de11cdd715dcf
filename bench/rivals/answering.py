"""The main loop of a rival: reads JSON lines with SQL, writes JSON lines with seconds or errors.

Needs only the standard library and any version of pyarrow, since rivals have environments of their
own.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import pyarrow as pa


def replies() -> TextIO:
    """Reserve standard output for replies; output of libraries goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return pipe


# Any: pyarrow publishes no types.
def serve(pipe: TextIO, run: Callable[[str], Any]) -> None:
    """Serve requests until standard input ends. If a request has a file, write the rows to it."""
    pipe.write("ready\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            began_s = time.perf_counter()
            table = run(request["sql"])
            seconds = time.perf_counter() - began_s
            if request["file"]:
                with pa.ipc.new_stream(request["file"], table.schema) as out:
                    out.write_table(table)
            reply: dict[str, object] = {"seconds": seconds}
        except Exception as exc:  # noqa: BLE001 -- a rival may fail in any way
            reply = {"error": f"{type(exc).__name__}: {exc}"}
        pipe.write(json.dumps(reply) + "\n")

"""The loop of a rival: a line of JSON with SQL in, a line with seconds or an error out.

It needs the standard library and any pyarrow, as it runs in environments that are not ours.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import pyarrow as pa


def replies() -> TextIO:
    """Keep standard output for replies; what libraries print goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return pipe


# Any: pyarrow publishes no types.
def serve(pipe: TextIO, run: Callable[[str], Any]) -> None:
    """Answer until standard input ends. A request that names a file gets its rows there."""
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
        except Exception as exc:
            reply = {"error": f"{type(exc).__name__}: {exc}"}
        pipe.write(json.dumps(reply) + "\n")

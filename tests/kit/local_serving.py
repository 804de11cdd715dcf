"""Stands for the process of a local model: does what the name of its file says."""

import json
import os
import signal
import sys
import time


def main() -> None:
    options = json.loads(sys.argv[1])
    name = os.path.basename(options["file"])
    if name == "loads":
        _ready(options)
        signal.sigwait({signal.SIGTERM})
    elif name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _ready(options)
        while True:
            time.sleep(60)
    elif name == "silent":
        time.sleep(600)
    elif name == "ends":
        _ready(options)
    elif name == "fails":
        sys.stderr.write("info: loading\n" + "error: no tensor é" + "x" * 6000 + " is there\n")
        sys.exit(3)
    elif name == "floods":
        sys.stderr.write("y" * 1_000_000 + "\nerror: the last word")
        sys.exit(4)
    elif name == "lacks":
        import xllamacpp_that_is_not_installed  # type: ignore[import-not-found] # noqa: F401
    else:
        sys.exit(5)


def _ready(options: dict[str, int]) -> None:
    with os.fdopen(options["ready_fd"], "wb") as ready:
        ready.write(b"ready\n")


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()

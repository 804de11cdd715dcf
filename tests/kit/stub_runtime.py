"""Takes the place of a runtime: `stub_runtime.py FOLDER METRICS_PORT`; needs the standard library.

It is ready as long as the folder has no file `unready`. With a file `broken` it ends at once, with
an error that names a path and a secret. It counts its starts, and its SIGHUPs.
"""

import http.server
import os
import signal
import sys
from pathlib import Path


def main(folder: Path, port: int) -> None:
    _append(folder / "starts", str(os.getpid()))
    signal.signal(signal.SIGHUP, lambda *_: _append(folder / "reloads", "one"))
    if (folder / "broken").exists():
        print("Traceback (most recent call last):", file=sys.stderr)
        print(f"error: {folder}/caraway.yaml: line 3: no such source", file=sys.stderr)
        print("the password is hunter2000", file=sys.stderr)
        sys.exit(1)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_ready = not (folder / "unready").exists()
            self.send_response(200 if is_ready else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def _append(file: Path, line: str) -> None:
    with file.open("a") as stream:
        stream.write(f"{line}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

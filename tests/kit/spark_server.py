"""A server of Spark Connect, Sail, in a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway_core.protocols.sources import SourceRequest

_STOP_S = 60


class SparkServer:
    """A server in a child process. Its tables are folders of Parquet files.

    The catalog of Sail lasts as long as a session, so tables have paths in place of names, as
    Spark reads them, too.
    """

    def __init__(self, port: int, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.port, self._process, self._folder = port, process, folder

    def load(self, name: str, rows: "pa.Table") -> None:
        """Create or replace a table with these rows."""
        import pyarrow.parquet as pq

        (self._folder / name).mkdir(exist_ok=True)
        pq.write_table(rows, self._folder / name / "part.parquet")

    def kill(self) -> None:
        """End it, as a power failure does."""
        self._process.kill()
        self._process.wait()

    def request(self, name: str, **params: str) -> "SourceRequest":
        """Return the request of a dataset over a table that was loaded."""
        place = str(self._folder / name).replace('"', '""')
        return self.request_of(f'parquet."{place}"', **params)

    def request_of(self, path: str, **params: str) -> "SourceRequest":
        """Return the request of a dataset over what a path names."""
        from caraway_core.ids import TableName
        from caraway_core.protocols.sources import SourceRequest

        given = {"spark_remote": f"sc://127.0.0.1:{self.port}/;x-trace=hunter2", **params}
        root = Path("/")
        return SourceRequest(TableName("t"), "spark", path, given, (), "read", root, root)


@contextmanager
def serving() -> Iterator[SparkServer]:
    """Start a server."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, __file__, str(writer)],
            pass_fds=(writer,),
            stdout=log,
            stderr=log,
            cwd=folder,
        )
        os.close(writer)
        try:
            with os.fdopen(reader) as pipe:
                line = pipe.readline()
            assert line, log.seek(0) or log.read()[-2_000:]
            yield SparkServer(int(line), process, Path(folder))
        finally:
            process.kill()
            process.wait(_STOP_S)


def _main() -> None:
    import threading

    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    with os.fdopen(int(sys.argv[1]), "w") as pipe:
        pipe.write(f"{port}\n")
    threading.Event().wait()


if __name__ == "__main__":
    _main()

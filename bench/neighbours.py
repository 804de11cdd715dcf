"""Processes that compute beside a small cluster as further executors would beside a large one.

Virtual cores often share a real one: a loop then takes twice the processor time while another one
runs. Without neighbours the executors of a small cluster have real cores to themselves, and those
of a large one do not, so that each that is added seems to add less than it does.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from datafusion import SessionConfig, SessionContext

from bench import quotas

_QUERIES = sorted((Path(__file__).parent / "queries").glob("q*.sql"))
_ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def computing(count: int, cores: float, folder: Path) -> Iterator[Sequence[int]]:
    """Run plain DataFusion in some processes, each held to a part of a core; yield their ids.

    Each runs the queries of TPC-H over the folder again and again until the block ends.

    Raises:
        NoQuotasError: quotas cannot be set here.
    """
    with contextlib.ExitStack() as ending:
        started = [ending.enter_context(_started(folder, number)) for number in range(count)]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        pids = [process.pid for process in started]
        with quotas.held(pids, cores):
            yield pids


@contextlib.contextmanager
def _started(folder: Path, number: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bench.neighbours", str(folder), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def _compute(folder: Path, number: int) -> None:
    """Run queries without an end; each process begins with another one."""
    context = SessionContext(SessionConfig().with_target_partitions(1))
    for file in folder.glob("*.parquet"):
        context.register_parquet(file.stem, str(file))
    texts = [path.read_text() for path in _QUERIES]
    print("computing", flush=True)
    while True:
        for index in range(len(texts)):
            context.sql(texts[(7 * number + index) % len(texts)]).collect()


if __name__ == "__main__":
    _compute(Path(sys.argv[1]), int(sys.argv[2]))

"""Runs a cluster on this machine with `caraway cluster up`."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from caraway_cluster.folder import ClusterFolder
from caraway_core.settings import Address

BIN = Path(sys.executable).parent
_LIMIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The endpoints of a cluster, and what a process needs to join its Ray cluster."""

    url: str
    metrics: str
    head: Address
    token_file: Path
    addresses: dict[str, str]
    """The address of each process by name."""
    folder: ClusterFolder
    programs: Path
    flight: str = ""

    def scale(self, executors: int) -> None:
        """Change the number of executors and wait until it is reached."""
        _run(self.programs, "scale", str(executors), folder=self.folder)


@contextlib.contextmanager
def cluster(
    manifest: Path,
    executors: int,
    cores: int = 1,
    state: str | None = None,
    programs: Path = BIN,
    flags: Sequence[str] = (),
) -> Iterator[Cluster]:
    """Run a manifest on executors with `cores` cores each; yield once all of them are ready."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as scratch:
        folder = ClusterFolder(Path(scratch) / "cluster")
        listen = [f"--{name}=127.0.0.1:0" for name in ("http", "flight", "metrics")]
        count = [f"--executors={executors}", f"--cores={cores}"]
        try:
            store = [f"--state={state}"] if state else []
            _run(
                programs,
                "up",
                str(manifest),
                *count,
                *listen,
                *store,
                *flags,
                "--detach",
                folder=folder,
            )
            status = folder.status()
            assert status is not None
            addresses = {process.name: process.address for process in status.processes}
            url = f"http://{status.endpoints['http']}"
            metrics = status.endpoints["metrics"]
            head = folder.read_plan().head
            flight = status.endpoints["flight"]
            yield Cluster(url, metrics, head, folder.token, addresses, folder, programs, flight)
        finally:
            if folder.is_locked:
                _run(programs, "down", folder=folder)


def _run(programs: Path, command: str, *flags: str, folder: ClusterFolder) -> None:
    done = subprocess.run(
        [str(programs / "caraway"), "cluster", command, *flags, "--data-dir", str(folder.path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=_LIMIT_S,
    )  # fmt: skip
    if done.returncode:
        logs = "\n".join(
            f"{log.name}: {log.read_text(errors='replace')[-1500:]}"
            for log in (folder.path / "logs").glob("*.log")
        )
        raise RuntimeError(f"caraway cluster {command}: {done.stderr}\n{logs}")

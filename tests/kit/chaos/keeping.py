"""Runs the processes of a cluster as the chart does, and restarts each one that ends."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from caraway_core.settings import Address
from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import Served
from tests.kit.networks import clocks_ahead
from tests.kit.networks.hosts import Network
from tests.kit.ray_cluster import (
    START_S,
    Host,
    Process,
    RayCluster,
    descendants,
    marked,
    ray_cluster,
    start,
)

SCHEDULERS = ("s1", "s2")
EXECUTORS = ("e1", "e2")
STORE, HEAD, VALKEY = "store", "head", "valkey"
_LOOK_S = 0.1
VALKEY_HOST = "outside-valkey"
HOSTS = {HEAD: 1, STORE: 2, "e1": 11, "e2": 12, "s1": 101, "s2": 102, "outside": 254,
         VALKEY_HOST: 250}  # fmt: skip
"""The last numbers of the addresses of `RayCluster`, and of this process."""
AHEAD, AHEAD_S = ("s2", "e2"), 600.0


class Keeper:
    """Restarts ended processes like a kubelet, with the same addresses and data."""

    def __init__(self, cluster: RayCluster, server: valkey.Server, manifest: Path) -> None:
        self.cluster = cluster
        self.server = server
        self.urls: dict[str, str] = {}
        self.ends: list[str] = []
        self._manifest = manifest
        self._store: Process | None = None
        self._stopping = threading.Event()
        self._is_held = False

    @property
    def store_address(self) -> Address:
        # The head listens on every address of the host.
        return Address(f"{self.cluster.network}.2", self.cluster.head_address.port - 12_000)

    def process(self, name: str) -> Process:
        of = self.cluster
        if name == HEAD:
            return of.head
        if name == STORE:
            assert self._store is not None
            return self._store
        return of.executors[name] if name in EXECUTORS else of.schedulers[name]

    def pid(self, name: str) -> int:
        """Return the process once it runs; the id of an ended process may have been reused."""
        until(lambda: self._is_alive(name), f"{name} runs", START_S)
        return self.server.pid if name == VALKEY else self.process(name).popen.pid

    def until_replaced(self, name: str, pid: int) -> None:
        """Wait until a process that received a signal is replaced."""
        until(lambda: self._is_alive(name) and self.pid(name) != pid, f"{name} is another", START_S)

    def alone(self, name: str) -> Sequence[int]:
        return [self.pid(name)]

    def pids(self, name: str) -> Sequence[int]:
        """Return a process and all of its descendants."""
        pid = self.pid(name)
        return (pid, *descendants(pid))

    def child(self, name: str, title: str) -> Sequence[int]:
        """Return the descendant of a process whose command line contains a word, or None."""
        return [pid for pid, line in descendants(self.pid(name)).items() if title in line][:1]

    def all_pids(self) -> Sequence[int]:
        return (*([self.server.pid] if self.server.is_alive else ()), *marked(self.cluster.mark))

    def until_ready(self, seconds: float) -> float:
        """Wait until both schedulers have both executors ready; return the seconds."""
        began = time.monotonic()

        def look() -> bool:
            return all(Served(url).is_ready(len(EXECUTORS)) for url in list(self.urls.values()))

        until(look, "both schedulers are ready", seconds)
        return time.monotonic() - began

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Start the cluster; the block begins when everything is ready."""
        self._begin(STORE)
        for name in SCHEDULERS:
            self._begin(name)
        self.until_ready(START_S)
        names = (*SCHEDULERS, *EXECUTORS, STORE, HEAD, VALKEY)
        threads = [threading.Thread(target=self._keep, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()
            self._end_store()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Restart no processes inside the block."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def _keep(self, name: str) -> None:
        while not self._stopping.wait(_LOOK_S):
            if self._is_held or self._is_alive(name):
                continue
            code = "" if name == VALKEY else f" with {self.process(name).popen.returncode}"
            self.ends.append(f"{name} ended{code}")
            try:
                self._begin(name)
            except Exception as exc:
                self.ends.append(f"{name} did not start: {str(exc)[-500:]}")

    def _is_alive(self, name: str) -> bool:
        if name == VALKEY:
            return self.server.is_alive
        return self.process(name).popen.poll() is None

    def _begin(self, name: str) -> None:
        """Start a process, and wait until it is up."""
        if name == VALKEY:
            self.server.kill()
            self.server.start()
        elif name == STORE:
            address = str(self.store_address)
            of = self.cluster
            self._store = start(of.folder, of.mark, STORE, STORE, "--listen", address,
                                place="--dir", host=of.hosts.get(STORE))  # fmt: skip
            self._up(self._store)
        elif name == HEAD:
            self._up(self.cluster.begin_head())
        elif name in EXECUTORS:
            self._up(self.cluster.begin(name))
        else:
            made = self._up(self.cluster.begin_scheduler(name, self._manifest))
            self.urls[name] = f"http://{made.facts['http']}"

    def _up(self, process: Process) -> Process:
        try:
            return process.wait_up()
        except AssertionError:
            # The process hangs, or was stopped before it was up.
            process.kill()
            raise

    def _end_store(self) -> None:
        if self._store is not None and self._store.popen.poll() is None:
            self._store.popen.terminate()
            self._store.popen.wait(60)


@contextmanager
def kept_cluster(
    folder: Path, text: Callable[[str], str], network: Network | None = None
) -> Iterator[Keeper]:
    """Start two schedulers, two executors, a head, a store, and a Valkey for all state.

    `text` returns the manifest for a location of results. With a network, each process has a host.
    """
    outside: dict[str, Any] = {}
    if network is not None:
        outside = {"host": network.addresses[VALKEY_HOST], "protected-mode": "no"}
    with (
        valkey.serving(tcp=True, **outside) as server,
        ray_cluster(
            folder,
            len(EXECUTORS),
            server.tcp_url,
            hosts=_hosts(network),
            network=network.prefix if network else "",
        ) as cluster,
    ):
        manifest = folder / "caraway.yaml"
        keeper = Keeper(cluster, server, manifest)
        manifest.write_text(text(f"caraway://{keeper.store_address}"))
        with keeper.at_work():
            yield keeper


def _hosts(network: Network | None) -> Mapping[str, Host]:
    """Return the hosts of processes; the clocks of `AHEAD` are ahead of the others."""
    if network is None:
        return {}
    fast = clocks_ahead.environ(AHEAD_S)
    return {
        name: Host(network.within(name), fast if name in AHEAD else {})
        for name in HOSTS
        if not name.startswith("outside")
    }


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

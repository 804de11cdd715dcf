"""Two schedulers, two executors, a head and a Valkey, of which any may die or pause at any time.

What is acknowledged is there at the end, once, on both schedulers; no read goes back behind it.
CARAWAY_CHAOS_S says how long faults go on, CARAWAY_CHAOS_SEED which come.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.kit import valkey
from tests.kit.chaos import LENGTH_S, MANIFEST, SEED, Chaos, wait, write_sources
from tests.kit.fault_clusters import Served
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
BETWEEN_S = (1.0, 5.0)
PAUSE_S = (0.5, 8.0)
Fault = Callable[[], None]


class Harm:
    """Does harm to the processes of a cluster, and has each come back."""

    def __init__(self, cluster: RayCluster, server: valkey.Server, chosen: random.Random) -> None:
        self.cluster = cluster
        self.server = server
        self.urls: dict[str, str] = {}
        self.log: list[str] = []
        self._chosen = chosen
        self._manifest = cluster.folder / "caraway.yaml"

    def serve(self, name: str) -> None:
        process = self.cluster.begin_scheduler(name, self._manifest).wait_up()
        self.urls[name] = f"http://{process.facts['http']}"

    def kills(self) -> Mapping[str, Fault]:
        return {
            "s1": lambda: self._kill_scheduler("s1"),
            "s2": lambda: self._kill_scheduler("s2"),
            "e1": lambda: self._kill_executor("e1"),
            "e2": lambda: self._kill_executor("e2"),
            "head": self._kill_head,
            "valkey": self._kill_server,
        }

    def pauses(self) -> Mapping[str, Fault]:
        of = self.cluster
        return {
            "s1": lambda: self._pause(of.schedulers["s1"].popen.pid),
            "s2": lambda: self._pause(of.schedulers["s2"].popen.pid),
            "e1": lambda: self._pause(of.executors["e1"].popen.pid),
            "actor of e1": lambda: self._pause(of.actor_pid("e1")),
            "actor of e2": lambda: self._pause(of.actor_pid("e2")),
            "head": lambda: self._pause(of.head.popen.pid),
            "valkey": lambda: self._pause(self.server.pid),
        }

    def go_on(self, faults: Mapping[str, Fault], length_s: float) -> None:
        """Draw faults, one after another, for so long."""
        end = time.monotonic() + length_s
        while time.monotonic() < end:
            name = self._chosen.choice(sorted(faults))
            began = time.monotonic()
            faults[name]()
            self.log.append(f"{name} ({time.monotonic() - began:.1f} s)")
            wait(self._chosen.uniform(*BETWEEN_S))

    def _kill_scheduler(self, name: str) -> None:
        self.cluster.schedulers[name].kill()
        self.serve(name)

    def _kill_executor(self, name: str) -> None:
        self.cluster.executors[name].kill()
        self.cluster.begin(name).wait_up()

    def _kill_head(self) -> None:
        self.cluster.head.kill()
        self.cluster.begin_head().wait_up()

    def _kill_server(self) -> None:
        self.server.kill()
        self.server.start()

    def _pause(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                wait(self._chosen.uniform(*PAUSE_S))
            finally:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("kind", ["kills", "pauses"])
def test_what_is_acknowledged_outlives_any_process(tmp_path: Path, kind: str) -> None:
    write_sources(tmp_path)
    (tmp_path / "caraway.yaml").write_text(MANIFEST)
    chosen = random.Random(SEED)
    with (
        valkey.serving() as server,
        ray_cluster(tmp_path, 2, server.url, head_state=None) as cluster,
    ):
        harm = Harm(cluster, server, chosen)
        for name in ("s1", "s2"):
            harm.serve(name)
            Served(harm.urls[name]).until_ready(2)
        load = Chaos(tmp_path, harm.urls, SEED)
        with load.at_work():
            wait(3)
            harm.go_on(harm.kills() if kind == "kills" else harm.pauses(), LENGTH_S)
        for url in harm.urls.values():
            Served(url).until_ready(2, 180)
        findings = load.check()
    print(kind, {"faults": len(harm.log)}, load.told())
    assert not findings, "\n".join([*findings, "after:", *harm.log])
    assert load.ledger.acknowledged and load.jobs and load.number and load.reads

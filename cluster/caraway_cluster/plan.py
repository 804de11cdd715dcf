"""Computes the processes of a cluster on one machine and their command lines. No I/O."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from caraway_core.manifest.texts import memory
from caraway_core.settings import Address, ClusterOptions

Role = Literal["head", "scheduler", "executor"]
_PORTS = range(20_000, 32_000)
"""Below the ephemeral ports of the kernel."""
_MEMORY_SHARE = 0.5
_STORES_SHARE = 0.2
_MINIMUM_STORE_BYTES = 80 * 1024 * 1024
_FIRST_EXECUTOR = 10
MAX_EXECUTORS = 200


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The configuration of a cluster, as stored in its data directory."""

    manifest: str
    executors: int
    cores: int
    memory_bytes: int
    store_bytes: int
    drain_timeout_s: float
    network: str
    """The first three bytes of the loopback addresses of this cluster."""
    head_port: int
    http: str
    flight: str
    metrics: str
    state: str | None
    log_format: str
    parallel_reads: bool = False
    limits_file: str | None = None

    @property
    def head(self) -> Address:
        return Address(f"{self.network}.1", self.head_port)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ClusterPlan":
        fields: dict[str, Any] = json.loads(text)
        return cls(**fields)

    def scaled(self, executors: int) -> "ClusterPlan":
        return replace(self, executors=executors)


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process of the cluster."""

    name: str
    role: Role
    address: str


def make_plan(options: ClusterOptions) -> ClusterPlan:
    """Complete the options: by default the machine is divided evenly among the executors."""
    count = max(1, options.executors)
    total = memory.total_bytes()
    network, port = _place(options.data_dir)
    return ClusterPlan(
        manifest=str(options.manifest.absolute()),
        executors=options.executors,
        cores=options.cores or max(1, (os.cpu_count() or 1) // count),
        memory_bytes=options.memory_bytes or int(total * _MEMORY_SHARE / count),
        store_bytes=max(_MINIMUM_STORE_BYTES, int(total * _STORES_SHARE / (count + 1))),
        drain_timeout_s=options.drain_timeout_s,
        network=network,
        head_port=port,
        http=str(options.http),
        flight=str(options.flight),
        metrics=str(options.metrics),
        state=options.state,
        log_format=options.log_format,
        parallel_reads=options.parallel_reads,
        limits_file=str(options.limits_file.absolute()) if options.limits_file else None,
    )


def _place(data_dir: Path) -> tuple[str, int]:
    """Derive addresses and a port from the directory, so that clusters rarely collide."""
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).digest()
    network = f"127.{64 + digest[0] % 128}.{1 + digest[1] % 254}"
    return network, _PORTS[int.from_bytes(digest[2:6], "big") % len(_PORTS)]


def processes(plan: ClusterPlan) -> Mapping[str, ProcessSpec]:
    """Return the processes of the cluster by name, in start order."""
    specs = [
        ProcessSpec("head", "head", str(plan.head)),
        ProcessSpec("scheduler", "scheduler", f"{plan.network}.2"),
    ]
    for number in range(1, plan.executors + 1):
        address = f"{plan.network}.{_FIRST_EXECUTOR + number - 1}"
        specs.append(ProcessSpec(f"executor-{number}", "executor", address))
    return {spec.name: spec for spec in specs}


def environment(plan: ClusterPlan, spec: ProcessSpec) -> Mapping[str, str]:
    """Return the environment variables of a process.

    The URL of the state store may contain a password, which command lines would show to all users.
    """
    if plan.state is None or spec.role == "executor":
        return {}
    return {"CARAWAY_STATE": plan.state}


def command(plan: ClusterPlan, spec: ProcessSpec, folder: Path, ready_fd: int) -> list[str]:
    """Return the command line of a process."""
    token = str(folder / "token")
    common = [
        "--data-dir", str(folder / spec.name), "--token-file", token,
        "--log-format", plan.log_format, "--ready-fd", str(ready_fd),
    ]  # fmt: skip
    joins = ["--head", str(plan.head), "--node-ip", spec.address, "--id", spec.name]
    store = ["--object-store-memory", str(plan.store_bytes)]
    match spec.role:
        case "head":
            flags = ["--address", str(plan.head)]
        case "scheduler":
            listens = ["--http", plan.http, "--flight", plan.flight]
            listens += ["--metrics", plan.metrics]
            bounds = ["--limits-file", plan.limits_file] if plan.limits_file else []
            flags = [plan.manifest, *joins, *store, *listens, *bounds]
        case "executor":
            limits = ["--cores", str(plan.cores), "--memory", str(plan.memory_bytes)]
            drain = ["--drain-timeout", str(plan.drain_timeout_s)]
            flags = [*joins, *store, *limits, *drain, "--metrics", "127.0.0.1:0"]
            if plan.parallel_reads:
                flags += ["--flight", f"{spec.address}:0"]
    return [sys.executable, "-m", "caraway", spec.role, *flags, *common]

"""What a cluster on one machine consists of: values in, command lines out."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from caraway_core.manifest import memory
from caraway_core.settings import Address, ClusterOptions

Role = Literal["head", "scheduler", "executor"]
_PORTS = range(20_000, 32_000)
"""Below those that the kernel hands out."""
_MEMORY_SHARE = 0.5
_STORES_SHARE = 0.2
_MINIMUM_STORE_BYTES = 80 * 1024 * 1024
_FIRST_EXECUTOR = 10
MOST_EXECUTORS = 200


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Everything that the keeper needs to know, as it lies in the data directory."""

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
class Member:
    """One process of the cluster."""

    name: str
    role: Role
    address: str


def plan(options: ClusterOptions) -> ClusterPlan:
    """Fill in what the flags leave open: the machine is divided among the executors."""
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
    )


def _place(data_dir: Path) -> tuple[str, int]:
    """Addresses and a port that another cluster on this machine has hardly."""
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).digest()
    network = f"127.{64 + digest[0] % 128}.{1 + digest[1] % 254}"
    return network, _PORTS[int.from_bytes(digest[2:6], "big") % len(_PORTS)]


def members(wanted: ClusterPlan) -> Mapping[str, Member]:
    """The processes that shall run, in the order in which they start."""
    found = [
        Member("head", "head", str(wanted.head)),
        Member("scheduler", "scheduler", f"{wanted.network}.2"),
    ]
    for number in range(1, wanted.executors + 1):
        address = f"{wanted.network}.{_FIRST_EXECUTOR + number - 1}"
        found.append(Member(f"executor-{number}", "executor", address))
    return {member.name: member for member in found}


def environment(wanted: ClusterPlan, member: Member) -> Mapping[str, str]:
    """Return the variables of a process. The URL of the state may hold a password."""
    if wanted.state is None or member.role == "executor":
        return {}
    return {"CARAWAY_STATE": wanted.state}


def command(wanted: ClusterPlan, member: Member, folder: Path, ready_fd: int) -> list[str]:
    """The program of a process of the cluster."""
    token = str(folder / "token")
    common = [
        "--data-dir", str(folder / member.name), "--token-file", token,
        "--log-format", wanted.log_format, "--ready-fd", str(ready_fd),
    ]  # fmt: skip
    joins = ["--head", str(wanted.head), "--node-ip", member.address, "--id", member.name]
    store = ["--object-store-memory", str(wanted.store_bytes)]
    match member.role:
        case "head":
            flags = ["--address", str(wanted.head)]
        case "scheduler":
            listens = ["--http", wanted.http, "--flight", wanted.flight]
            listens += ["--metrics", wanted.metrics]
            flags = [wanted.manifest, *joins, *store, *listens]
        case "executor":
            limits = ["--cores", str(wanted.cores), "--memory", str(wanted.memory_bytes)]
            drain = ["--drain-timeout", str(wanted.drain_timeout_s)]
            flags = [*joins, *store, *limits, *drain, "--metrics", "127.0.0.1:0"]
    return [sys.executable, "-m", "caraway", member.role, *flags, *common]

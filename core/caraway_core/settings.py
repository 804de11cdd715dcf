"""Process settings from the command line, as opposed to the manifest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

LogFormat = Literal["text", "json"]
MOST_PORT = 65535
ENGINE_VARIABLES: Mapping[str, str] = {
    # The engine's allocator offers freed memory to the system after 10 ms, which takes it when it
    # needs some. Until then the next statement gets the same pages, without the cost of new ones.
    "MIMALLOC_PURGE_DELAY": "10",
    "MIMALLOC_PURGE_DECOMMITS": "0",
    # So are pages of threads that ended and large pieces. Else these wait for the next such event,
    # which an idle process does not have.
    "MIMALLOC_ABANDONED_PAGE_PURGE": "1",
    "MIMALLOC_ARENA_PURGE_MULT": "0",
}
"""Defaults for the environment of processes that load the engine, which reads them at once."""
_HOST = re.compile(r"[\w.%:-]*|\[[\w.%:-]+\]")
_PORT = re.compile(r"[0-9]{1,5}")
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `host:port`, `:port`, `port` or `[v6]:port`; no host means 127.0.0.1.

        Raises:
            ValueError: the text is none of these.
        """
        host, _, port = text.rpartition(":")
        if not _HOST.fullmatch(host) or not _PORT.fullmatch(port) or int(port) > MOST_PORT:
            raise ValueError(
                f"'{text[:_LONGEST_SHOWN]}' is not an address; write HOST:PORT, for example "
                "0.0.0.0:8090"
            )
        return cls(host.strip("[]") or "127.0.0.1", int(port))


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """The connection of a process to a cluster: where its head is, and who it is among the others.

    `node_ip` of None is the address of the host. `token_file` is the cluster's secret.
    """

    head: Address
    token_file: Path
    node_ip: str | None = None
    object_store_bytes: int = 0
    """Memory for what crosses between processes; 0 is a share of the machine's."""


@dataclass(frozen=True, slots=True)
class HeadOptions:
    """The flags of `caraway head`. `state` is the URL of the Redis that keeps its state."""

    address: Address
    data_dir: Path
    token_file: Path | None = None
    state: str | None = None
    log_format: LogFormat = "text"
    ready_fd: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutorFlight:
    """Where an executor serves parts of answers, and where clients reach that.

    With a certificate and its key it uses TLS; with `client_ca_file` it takes only clients whose
    certificate these authorities have signed.
    """

    listen: Address
    advertised: Address | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """The flags of `caraway executor`. 0 cores or bytes are what the machine allows."""

    join: JoinOptions
    data_dir: Path
    executor_id: str | None = None
    cores: int = 0
    memory_bytes: int = 0
    metrics: Address | None = None
    flight: ExecutorFlight | None = None
    drain_timeout_s: float = 30.0
    log_format: LogFormat = "text"
    ready_fd: int | None = None


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The flags of `caraway scheduler` in addition to those of `run`.

    `state` is the URL of a store that all schedulers share; None is a file of this one.
    """

    join: JoinOptions
    scheduler_id: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The flags of `caraway store`. `most_bytes` bounds one chunk."""

    folder: Path
    listen: Address
    token_file: Path
    most_bytes: int = 1024**3
    most_connections: int = 1024
    has_metrics: bool = False
    log_format: LogFormat = "text"
    ready_fd: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The flags of `caraway cluster up`. 0 cores or bytes divide what the machine allows."""

    manifest: Path
    executors: int
    http: Address
    flight: Address
    metrics: Address
    data_dir: Path
    cores: int = 0
    memory_bytes: int = 0
    drain_timeout_s: float = 30.0
    parallel_reads: bool = False
    """True if executors serve Flight."""
    limits_file: Path | None = None
    """As that of `RunOptions`."""
    state: str | None = None
    detach: bool = False
    log_format: LogFormat = "text"


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """The flags of `caraway operator`. No namespaces are all of them."""

    listen: Address
    namespaces: tuple[str, ...] = ()
    lease_namespace: str | None = None
    """Where its Lease is; its own namespace, if not given."""
    identity: str | None = None
    log_format: LogFormat = "text"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The flags of `caraway run`. `ready_fd` is a descriptor that gets the bound addresses.

    `limits_file` holds the limits of whoever runs this; the manifest is the user's.
    `shutdown_delay_s` is how long it serves on after SIGTERM, until no client is sent to it.
    """

    manifest: Path
    http: Address
    flight: Address
    metrics: Address
    data_dir: Path
    log_format: LogFormat = "text"
    watch: bool = False
    limits_file: Path | None = None
    shutdown_delay_s: float = 0.0
    ready_fd: int | None = None


@dataclass(frozen=True, slots=True)
class ManagementOptions:
    """The flags of `caraway management`. `database` is a URL; None is a file of the directory.

    Without a key file, the keys that seal secrets are in the environment or in the directory.
    `platform` is a file with the regions, clusters, images and git places that projects may use.
    """

    data_dir: Path
    http: Address = Address("127.0.0.1", 8070)
    database: str | None = None
    key_file: Path | None = None
    platform: Path | None = None
    deployer: Literal["local", "kubernetes", "none"] = "local"
    installation: str = "caraway"
    """Distinguishes its namespaces from those of other services in a Kubernetes cluster."""
    allow_local_files: bool = False
    public_url: str | None = None
    """The address of the service for users and clients; None for the address that it listens on."""
    trusted_proxies: tuple[str, ...] = ()
    """The networks of proxies that name the addresses of clients."""
    oidc_issuer: str | None = None
    oidc_client_id: str = ""
    oidc_client_secret: str | None = field(default=None, repr=False)
    oidc_adds_users: bool = False
    log_format: LogFormat = "text"
    ready_fd: int | None = None

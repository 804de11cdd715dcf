"""How a process was started: what the command line decides, as opposed to the manifest."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LogFormat = Literal["text", "json"]


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
        host = host.strip("[]") or "127.0.0.1"
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(
                f"'{text}' is not an address; write HOST:PORT, for example 0.0.0.0:8090"
            )
        return cls(host, int(port))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The flags of `caraway run`. `ready_fd` is a descriptor that gets the bound addresses."""

    manifest: Path
    http: Address
    flight: Address
    metrics: Address
    data_dir: Path
    log_format: LogFormat = "text"
    watch: bool = False
    ready_fd: int | None = None

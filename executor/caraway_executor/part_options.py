"""The options of serving parts of answers, as values that its actor is given.

They name files and hold no secrets: Ray keeps what an actor is made with.
"""

from dataclasses import dataclass
from pathlib import Path

from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.settings import Address, ExecutorFlight
from caraway_serving.tls import ServerTls


@dataclass(frozen=True, slots=True)
class PartServing:
    """Where an executor listens, where clients reach it, and the file with the cluster's token.

    The port of `reached_at` is 0 if it is the one that it listens on.
    """

    wanted: ExecutorFlight
    reached_at: Address
    token_file: Path

    @classmethod
    def from_options(cls, wanted: ExecutorFlight, host: str, token_file: Path) -> "PartServing":
        """Complete the options; `host` is the address of this executor for other hosts.

        Raises:
            CarawayError: a file cannot be read.
        """
        listens = wanted.listen.host
        is_any = listens in ("0.0.0.0", "::", "")
        reached_at = wanted.advertised or Address(host if is_any else listens, 0)
        serving = cls(wanted, reached_at, token_file.absolute())
        serving.token()
        serving.tls()
        return serving

    def token(self) -> str:
        """Read the token of the cluster."""
        return ray_nodes.read_token(self.token_file)

    def tls(self) -> ServerTls | None:
        """Read the certificate, its key and the authorities of clients."""
        flight = self.wanted
        if flight.certificate_file is None or flight.key_file is None:
            return None
        client_ca = flight.client_ca_file
        return ServerTls(
            _contents(flight.certificate_file),
            _contents(flight.key_file),
            _contents(client_ca) if client_ca is not None else None,
        )


def _contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise CarawayError(f"cannot read '{file}': {exc.strerror}") from exc

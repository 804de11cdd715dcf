"""Decides which URLs a client uses. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from caraway.errors import InvalidEndpointError

HTTP_VARIABLES = ("CARAWAY_HTTP_URL", "CARAWAY_ENDPOINT")
FLIGHT_VARIABLE = "CARAWAY_FLIGHT_URL"
DEFAULT_HTTP_URL = "http://127.0.0.1:8090"
DEFAULT_FLIGHT_URL = "grpc://127.0.0.1:50051"
HTTP_PORT, FLIGHT_PORT = 8090, 50051
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_PLAIN = frozenset({"grpc", "grpc+tcp", "http"})
_SECURE = frozenset({"grpc+tls", "grpcs", "https"})


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """The address of a Flight server."""

    host: str
    port: int
    is_secure: bool

    @property
    def location(self) -> str:
        """The URL in the form that Arrow takes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'grpc+tls' if self.is_secure else 'grpc+tcp'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClientAddresses:
    """The URLs of one runtime. At least one is set."""

    http_url: str
    flight: FlightAddress | None

    @property
    def allows_fallback(self) -> bool:
        """Return whether HTTP may replace Flight. Plain HTTP never replaces Flight over TLS."""
        if not self.http_url:
            return False
        is_plain = not self.http_url.startswith("https:")
        return not (self.flight is not None and self.flight.is_secure and is_plain)


def resolve(
    http_url: str | None, flight_url: str | None, environ: Mapping[str, str]
) -> ClientAddresses:
    """Complete what the caller gave from the environment and the defaults.

    With only one URL, the other one is added for a runtime on this machine at the default port.
    An empty string turns a protocol off.

    Raises:
        InvalidEndpointError: a URL is not valid, or both are turned off.
    """
    if http_url is None and flight_url is None:
        http_url = next((environ[name] for name in HTTP_VARIABLES if environ.get(name)), None)
        flight_url = environ.get(FLIGHT_VARIABLE)
    if http_url is None and flight_url is None:
        return ClientAddresses(DEFAULT_HTTP_URL, parse_flight_url(DEFAULT_FLIGHT_URL))
    if flight_url is None:
        flight_url = _flight_beside(http_url or "")
    if http_url is None:
        http_url = _http_beside(flight_url)
    if not http_url and not flight_url:
        raise InvalidEndpointError("set http_url, flight_url or both")
    flight = parse_flight_url(flight_url) if flight_url else None
    return ClientAddresses(_http(http_url) if http_url else "", flight)


def parse_flight_url(url: str) -> FlightAddress:
    """Parse `grpc://HOST:PORT`, `grpc+tls://HOST:PORT` or `HOST:PORT`.

    Without a scheme, connections are encrypted except to this machine.

    Raises:
        InvalidEndpointError: the URL is not valid.
    """
    scheme, host, port = _parts(url)
    if scheme and scheme not in _PLAIN | _SECURE:
        raise InvalidEndpointError(
            f"'{url}' is not a valid Flight URL; use grpc://HOST:PORT or grpc+tls://HOST:PORT"
        )
    is_secure = scheme in _SECURE if scheme else host not in LOOPBACK_HOSTS
    return FlightAddress(host, port or (443 if is_secure else FLIGHT_PORT), is_secure)


def _flight_beside(http_url: str) -> str:
    scheme, host, port = _parts(http_url) if http_url else ("", "", 0)
    is_ours = host in LOOPBACK_HOSTS and port == HTTP_PORT
    prefix = "grpc+tls" if scheme == "https" else "grpc"
    return f"{prefix}://{_bracketed(host)}:{FLIGHT_PORT}" if is_ours else ""


def _http_beside(flight_url: str) -> str:
    address = parse_flight_url(flight_url) if flight_url else None
    if address is None or address.host not in LOOPBACK_HOSTS or address.port != FLIGHT_PORT:
        return ""
    scheme = "https" if address.is_secure else "http"
    return f"{scheme}://{_bracketed(address.host)}:{HTTP_PORT}"


def _http(url: str) -> str:
    text = url.strip()
    return text if "://" in text else f"http://{text}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _parts(url: str) -> tuple[str, str, int]:
    text = url.strip()
    has_scheme = "://" in text
    try:
        parts = urlsplit(text if has_scheme else f"//{text}")
        host, port = parts.hostname or "", parts.port or 0
    except ValueError as exc:
        raise InvalidEndpointError(f"'{url}' is not a valid URL: {exc}") from exc
    if not host:
        raise InvalidEndpointError(f"'{url}' is not a valid URL: it has no host")
    return (parts.scheme.lower() if has_scheme else ""), host, port

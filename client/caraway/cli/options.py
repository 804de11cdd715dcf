"""Options shared by the commands that talk to a runtime."""

import functools
import inspect
from collections.abc import Callable
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caraway.cli.variables import setting

if TYPE_CHECKING:
    from caraway.client import Client

# Somebody is waiting at the terminal: give up sooner than the library does.
COMMAND_RETRIES = 2

Endpoint = Annotated[
    str | None,
    typer.Option(
        "--url",
        "--endpoint",
        envvar=["CARAWAY_HTTP_URL", "CARAWAY_ENDPOINT"],
        metavar="URL",
        help="HTTP address of the runtime.  [default: http://127.0.0.1:8090]",
    ),
]
FlightUrl = Annotated[
    str | None,
    setting(
        "--flight-url URL",
        "CARAWAY_FLIGHT_URL",
        "Arrow Flight address of the runtime, such as grpc://127.0.0.1:50051.",
    ),
]
ApiKey = Annotated[
    str | None,
    setting(
        "--api-key KEY",
        "CARAWAY_API_KEY",
        "API key. Prefer the variable: other users of the machine can see options.",
    ),
]
CaCert = Annotated[
    Path | None,
    setting(
        "--cacert FILE",
        "CARAWAY_CACERT",
        "PEM file with the CA certificate that signed the server's certificate.",
    ),
]
Profile = Annotated[
    str | None,
    setting(
        "--profile NAME",
        "CARAWAY_PROFILE",
        "Profile of the config file that has the addresses and the key.",
    ),
]


class ListFormat(StrEnum):
    """Output format of lists that the server also sends as CSV."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class StatusFormat(StrEnum):
    """Output format of a status or a list."""

    TABLE = "table"
    JSON = "json"


ListFormatOption = Annotated[ListFormat, typer.Option("--format", help="Output format.")]
StatusFormatOption = Annotated[StatusFormat, typer.Option("--format", help="Output format.")]


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a connection to a command, which gets the client as its first argument.

    The command's own options come before them. The client is closed after the command.
    """
    return _connected(command, _connect)


def connected_with_flight(command: Callable[..., None]) -> Callable[..., None]:
    """Do as `connected`, with an option for the address of Flight, too."""
    return _connected(command, _connect_with_flight)


# Any: the signature is that of the function that connects.
def _connected(command: Callable[..., None], connect: Callable[..., Any]) -> Callable[..., None]:
    shared = inspect.signature(connect).parameters
    _, *own = inspect.signature(command).parameters.values()

    @functools.wraps(command)
    def with_client(**values: object) -> None:
        with closing(connect(**{name: values.pop(name) for name in shared})) as client:
            command(client, **values)

    return presented(with_client, [*own, *shared.values()])


def presented(
    command: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Let typer read other options of a command than Python does: it reads both of these."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _connect(
    endpoint: Endpoint = None,
    api_key: ApiKey = None,
    cacert: CaCert = None,
    profile: Profile = None,
) -> "Client":
    return connect(endpoint, api_key, cacert, profile)


def _connect_with_flight(
    endpoint: Endpoint = None,
    flight_url: FlightUrl = None,
    api_key: ApiKey = None,
    cacert: CaCert = None,
    profile: Profile = None,
) -> "Client":
    return connect(endpoint, api_key, cacert, profile, flight_url)


def connect(
    url: str | None,
    api_key: str | None,
    cacert: Path | None,
    profile: str | None = None,
    flight_url: str | None = None,
) -> "Client":
    """Return a client for these options. An invalid URL is a usage error.

    A profile is used as a whole: its key must not reach an address that is not its own.
    """
    # httpx takes 0.3 s to import, which `caraway run` and `--help` would pay as well.
    from caraway.client import Client
    from caraway.errors import InvalidEndpointError
    from caraway.requests import profiles

    has_address = bool(url or flight_url)
    if profile and has_address:
        raise typer.BadParameter(
            "pass an address or --profile, not both (CARAWAY_HTTP_URL, CARAWAY_ENDPOINT and "
            "CARAWAY_FLIGHT_URL are addresses, too)",
            param_hint="--profile",
        )
    connection_profile = profiles.ConnectionProfile()
    if not has_address:
        connection_profile = profiles.load(profiles.config_path(), profile)
    roots = cacert or (
        Path(connection_profile.cacert).expanduser() if connection_profile.cacert else None
    )
    try:
        return Client(
            api_key or connection_profile.api_key,
            http_url=url or connection_profile.url or None,
            flight_url=flight_url or connection_profile.flight_url or None,
            tls_root_cert=roots,
            max_retries=COMMAND_RETRIES,
        )
    except InvalidEndpointError as error:
        raise typer.BadParameter(error.message, param_hint="--url") from error

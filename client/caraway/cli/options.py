"""Options shared by the commands that talk to a runtime."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    typer.Option(
        "--flight-url",
        envvar="CARAWAY_FLIGHT_URL",
        metavar="URL",
        help="Arrow Flight address of the runtime, such as grpc://127.0.0.1:50051.",
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="CARAWAY_API_KEY",
        metavar="KEY",
        help="API key. Prefer the variable: other users of the machine can see options.",
    ),
]
CaCert = Annotated[
    Path | None,
    typer.Option(
        "--cacert",
        envvar="CARAWAY_CACERT",
        metavar="FILE",
        help="PEM file with the CA certificate that signed the server's certificate.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        envvar="CARAWAY_PROFILE",
        metavar="NAME",
        help="Profile of the config file that has the addresses and the key.",
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
    from caraway import profiles
    from caraway.client import Client
    from caraway.errors import InvalidEndpointError

    has_address = bool(url or flight_url)
    if profile and has_address:
        raise typer.BadParameter(
            "pass an address or --profile, not both (CARAWAY_HTTP_URL, CARAWAY_ENDPOINT and "
            "CARAWAY_FLIGHT_URL are addresses, too)",
            param_hint="--profile",
        )
    found = profiles.ConnectionProfile()
    if not has_address:
        found = profiles.load(profiles.config_path(), profile)
    roots = cacert or (Path(found.cacert).expanduser() if found.cacert else None)
    try:
        return Client(
            api_key or found.api_key,
            http_url=url or found.url or None,
            flight_url=flight_url or found.flight_url or None,
            tls_root_cert=roots,
            max_retries=COMMAND_RETRIES,
        )
    except InvalidEndpointError as error:
        raise typer.BadParameter(error.message, param_hint="--url") from error

"""Options shared by the commands that talk to a runtime."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from caraway.client import Client

DEFAULT_ENDPOINT = "http://127.0.0.1:8090"
# Somebody is waiting at the terminal: give up sooner than the library does.
COMMAND_RETRIES = 2

Endpoint = Annotated[
    str,
    typer.Option(
        "--endpoint", envvar="CARAWAY_ENDPOINT", metavar="URL", help="HTTP address of the runtime."
    ),
]
ApiKey = Annotated[
    str,
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


def connect(endpoint: str, api_key: str, cacert: Path | None) -> "Client":
    """Return a client for these options. An invalid endpoint is a usage error."""
    # httpx takes 0.3 s to import, which `caraway run` and `--help` would pay as well.
    from caraway.client import Client
    from caraway.errors import InvalidEndpointError

    try:
        return Client(endpoint, api_key, cacert=cacert, max_retries=COMMAND_RETRIES)
    except InvalidEndpointError as error:
        raise typer.BadParameter(error.message, param_hint="--endpoint") from error

"""Flags that several commands share, and the client that they describe."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caraway_core.settings import Address

if TYPE_CHECKING:
    from caraway.client import Client

DEFAULT_ENDPOINT = "http://127.0.0.1:8090"
# A person waits at the terminal: give up sooner than the library does.
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
        help="Key to send; prefer the variable, since other users can see flags.",
    ),
]
CaCert = Annotated[
    Path | None,
    typer.Option(
        "--cacert",
        envvar="CARAWAY_CACERT",
        metavar="FILE",
        help="PEM file with the authority that signed the server's certificate.",
    ),
]


class ListFormat(StrEnum):
    """How lists are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


ListFormatOption = Annotated[ListFormat, typer.Option("--format", help="How to print the list.")]


def connect(endpoint: str, api_key: str, cacert: Path | None) -> "Client":
    """A client for what the flags say; a malformed endpoint is a usage error."""
    # httpx takes 0.3 s to import, which `caraway run` and `--help` would pay as well.
    from caraway.client import Client
    from caraway.errors import InvalidEndpointError

    try:
        return Client(endpoint, api_key, cacert=cacert, max_retries=COMMAND_RETRIES)
    except InvalidEndpointError as error:
        raise typer.BadParameter(error.message, param_hint="--endpoint") from error


def address(text: str, flag: str) -> Address:
    """Read a HOST:PORT; anything else is a usage error."""
    try:
        return Address.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error


def size(text: str | None, flag: str) -> int | None:
    """Read a size such as 4GiB, or a share of the memory; anything else is a usage error."""
    # Comes with pydantic, which takes 0.1 s to import.
    from caraway_core.manifest import memory

    try:
        return None if text is None else memory.limit_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error

"""`caraway ready`: ask once, or until it is so."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options

if TYPE_CHECKING:
    from caraway.client import Client

POLL_INTERVAL_S = 0.25


def ready(
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every condition.")] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0.0, metavar="SECONDS", help="Wait this long for it to become ready."
        ),
    ] = 0.0,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    api_key: options.ApiKey = "",
    cacert: options.CaCert = None,
) -> None:
    """Tell whether everything in the manifest is loaded: exit code 0 if so, 1 if not."""
    with closing(options.connect(endpoint, api_key, cacert)) as client:
        is_ready, text = ask(client, verbose, wait, time.monotonic, time.sleep)
    print(text.rstrip())
    raise typer.Exit(0 if is_ready else 1)


def ask(
    client: "Client",
    verbose: bool,
    wait_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[bool, str]:
    """The last answer within `wait_s`.

    Raises:
        UnreachableError: nobody answered at the last attempt either.
    """
    # Comes with httpx, which is slow to import.
    from caraway.errors import UnreachableError

    deadline = clock() + wait_s
    while True:
        try:
            is_ready, text = client.readiness(verbose=verbose)
            if is_ready or clock() >= deadline:
                return is_ready, text
        except UnreachableError:
            if clock() >= deadline:
                raise
        sleep(POLL_INTERVAL_S)

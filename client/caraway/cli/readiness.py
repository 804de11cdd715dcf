"""`caraway ready`: check once whether a runtime is ready, or wait for it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options
from caraway_core.concurrency.clocks import SecondsClock, Sleep

if TYPE_CHECKING:
    from caraway.client import Client

POLL_INTERVAL_S = 0.25


@options.connected
def ready(
    client: "Client",
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every condition.")] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0.0, metavar="SECONDS", help="Wait up to this long until it is ready."
        ),
    ] = 0.0,
) -> None:
    """Check whether everything in the manifest is loaded; exit with 0 if so, 1 if not."""
    is_ready, text = poll_readiness(client, verbose, wait, time.monotonic, time.sleep)
    print(text.rstrip())
    raise typer.Exit(0 if is_ready else 1)


def poll_readiness(
    client: "Client",
    verbose: bool,
    wait_s: float,
    clock: SecondsClock,
    sleep: Sleep,
) -> tuple[bool, str]:
    """Poll until the runtime is ready or `wait_s` has passed; return the last result.

    Raises:
        UnreachableError: the last attempt could not connect.
    """
    # Imports httpx, which takes 0.3 s.
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

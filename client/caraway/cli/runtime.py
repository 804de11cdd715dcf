"""`caraway run` and `caraway validate`: start a standalone runtime, or check its manifest."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli.server_options import Manifest, with_run_options
from caraway_core import registry
from caraway_core.settings import RunOptions


@with_run_options(".caraway")
def run(options: RunOptions) -> None:
    """Start the runtime that MANIFEST describes and serve until Ctrl-C."""
    start: Callable[[RunOptions], int] = registry.COMMANDS.load("run")
    raise typer.Exit(start(options))


def validate(
    manifest: Manifest = Path("."),
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Do not look up the secrets that it refers to.")
    ] = False,
) -> None:
    """Check MANIFEST without starting anything and list all its problems."""
    check: Callable[..., int] = registry.COMMANDS.load("validate")
    raise typer.Exit(check(manifest, with_secrets=not no_secrets))

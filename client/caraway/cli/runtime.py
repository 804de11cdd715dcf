"""`caraway run` and `caraway validate`: start a standalone runtime, or check its manifest."""

from pathlib import Path
from typing import Annotated

import typer

from caraway.cli.server_options import Manifest, with_run_options
from caraway_core.loading import registry
from caraway_core.settings import RunOptions


@with_run_options(".caraway")
def run(options: RunOptions) -> None:
    """Start the runtime that MANIFEST describes and serve until Ctrl-C."""
    raise typer.Exit(registry.COMMANDS.build("run", options))


def validate(
    manifest: Manifest = Path("."),
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Do not look up the secrets that it refers to.")
    ] = False,
) -> None:
    """Check MANIFEST without starting anything and list all its problems."""
    raise typer.Exit(registry.COMMANDS.build("validate", manifest, with_secrets=not no_secrets))

"""`caraway run` and `caraway validate`: start a standalone runtime, or check its manifest."""

from collections.abc import Callable
from pathlib import Path

import typer

from caraway.cli.server_options import Manifest, with_run_options
from caraway_core import registry
from caraway_core.settings import RunOptions


@with_run_options(".caraway")
def run(options: RunOptions) -> None:
    """Start the runtime that MANIFEST describes and serve until Ctrl-C."""
    start: Callable[[RunOptions], int] = registry.COMMANDS.load("run")
    raise typer.Exit(start(options))


def validate(manifest: Manifest = Path(".")) -> None:
    """Check MANIFEST without starting anything and list all its problems."""
    check: Callable[[Path], int] = registry.COMMANDS.load("validate")
    raise typer.Exit(check(manifest))

"""`caraway init`, `run`, `validate` and `operator`: what starts from a manifest, or serves many."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import Manifest, address, with_run_options
from caraway.cli.variables import setting
from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.settings import OperatorOptions, RunOptions

FILES = ("caraway.yaml", "data/orders.csv")


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


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Target directory; created if it does not exist.")
    ] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a starter caraway.yaml and sample data to DIR."""
    targets = [folder / name for name in FILES]
    present = [str(target) for target in targets if target.exists()]
    if present and not force:
        raise CarawayError(f"file exists: {', '.join(present)}; pass --force to overwrite")
    for name, target in zip(FILES, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_content(name))
        print(f"wrote {target}")
    print(f"Start it with: caraway run {folder}")


def _content(name: str) -> bytes:
    return resources.files("caraway").joinpath("starter", *name.split("/")).read_bytes()


def operator(
    namespaces: Annotated[
        list[str] | None,
        setting(
            "--namespace NAME",
            "CARAWAY_NAMESPACES",
            "Watch this namespace only; repeatable. Default: all namespaces.",
        ),
    ] = None,
    listen: Annotated[
        str,
        setting(
            "--listen HOST:PORT",
            "CARAWAY_OPERATOR_LISTEN",
            "Address that serves /healthz and /metrics.",
        ),
    ] = "0.0.0.0:8080",
    lease_namespace: Annotated[
        str | None,
        setting(
            "--lease-namespace NAME",
            "CARAWAY_LEASE_NAMESPACE",
            "Namespace of the leader election Lease; default: that of the service account.",
        ),
    ] = None,
    identity: Annotated[
        str | None,
        setting(
            "--identity NAME",
            "CARAWAY_OPERATOR_IDENTITY",
            "Name of this operator in the Lease; default: the host name.",
        ),
    ] = None,
    log_format: server_options.LogFormatOption = "text",
) -> None:
    """Manage the Caraway clusters of a Kubernetes cluster until Ctrl-C."""
    options = OperatorOptions(
        listen=address(listen, "--listen"),
        namespaces=tuple(namespaces or ()),
        lease_namespace=lease_namespace,
        identity=identity,
        log_format=log_format,
    )
    raise typer.Exit(registry.COMMANDS.build("operator", options))

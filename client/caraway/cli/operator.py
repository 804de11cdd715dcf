"""`caraway operator`: start the Kubernetes operator."""

from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import address
from caraway_core.loading import registry
from caraway_core.settings import OperatorOptions


def operator(
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            envvar="CARAWAY_NAMESPACES",
            metavar="NAME",
            help="Watch this namespace only; repeatable. Default: all namespaces.",
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            envvar="CARAWAY_OPERATOR_LISTEN",
            metavar="HOST:PORT",
            help="Address that serves /healthz and /metrics.",
        ),
    ] = "0.0.0.0:8080",
    lease_namespace: Annotated[
        str | None,
        typer.Option(
            "--lease-namespace",
            envvar="CARAWAY_LEASE_NAMESPACE",
            metavar="NAME",
            help="Namespace of the leader election Lease; default: that of the service account.",
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity",
            envvar="CARAWAY_OPERATOR_IDENTITY",
            metavar="NAME",
            help="Name of this operator in the Lease; default: the host name.",
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

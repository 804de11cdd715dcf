"""`caraway operator`: start the Kubernetes operator."""

from typing import Annotated

import typer

from caraway.cli import server_options
from caraway.cli.server_options import address
from caraway.cli.variables import setting
from caraway_core.loading import registry
from caraway_core.settings import OperatorOptions


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

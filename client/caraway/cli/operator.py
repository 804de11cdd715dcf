"""`caraway operator`: hands its flags to the operator's own command."""

from collections.abc import Callable
from typing import Annotated

import typer

from caraway.cli import runtime
from caraway.cli.options import address
from caraway_core import registry
from caraway_core.settings import OperatorOptions


def operator(
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            envvar="CARAWAY_NAMESPACES",
            metavar="NAME",
            help="Look after this namespace only; repeatable. All of them, if not given.",
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            envvar="CARAWAY_OPERATOR_LISTEN",
            metavar="HOST:PORT",
            help="Where it serves /healthz and /metrics.",
        ),
    ] = "0.0.0.0:8080",
    lease_namespace: Annotated[
        str | None,
        typer.Option(
            "--lease-namespace",
            envvar="CARAWAY_LEASE_NAMESPACE",
            metavar="NAME",
            help="Namespace of its Lease; that of its service account, if not given.",
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity",
            envvar="CARAWAY_OPERATOR_IDENTITY",
            metavar="NAME",
            help="Name of this operator in the Lease; the host's, if not given.",
        ),
    ] = None,
    log_format: runtime.LogFormatOption = "text",
) -> None:
    """Look after the clusters that Kubernetes has, until Ctrl-C."""
    options = OperatorOptions(
        listen=address(listen, "--listen"),
        namespaces=tuple(namespaces or ()),
        lease_namespace=lease_namespace,
        identity=identity,
        log_format=log_format,
    )
    start: Callable[[OperatorOptions], int] = registry.COMMANDS.load("operator")
    raise typer.Exit(start(options))

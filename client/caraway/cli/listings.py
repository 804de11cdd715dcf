"""`caraway datasets`, `models`, `workers` and others: list what a runtime has."""

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli import options
from caraway.cli.options import ListFormat

if TYPE_CHECKING:
    from caraway.client import Client


def datasets(
    status: Annotated[
        bool, typer.Option("--status", help="Also show the status and error of each dataset.")
    ] = False,
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the datasets."""
    states = ("status", "progress", "error_message") if status else ()
    columns = ("name", "from", "acceleration_enabled", *states)
    query = {"status": "true"} if status else {}
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "datasets", query, columns, format)


def catalogs(
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the catalogs."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "catalogs", {}, ("name", "from"), format)


def models(
    status: Annotated[
        bool, typer.Option("--status", help="Also show the status and error of each model.")
    ] = False,
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the models."""
    states = ("status", "error_message") if status else ()
    query = {"status": "true"} if status else {}
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "models", query, ("id", "owned_by", *states), format)


def workers(
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the workers; those with `is_llm` can be named as a model."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "workers", {}, ("name", "description", "is_llm"), format)


def functions(
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the functions of the manifest."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "functions", {}, ("signature", "kind", "description"), format)


def executors(
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the executors with their state, and why one is not ready."""
    columns = ("executor_id", "state", "address", "cores", "active_tasks", "reason")
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "cluster/executors", {}, columns, format)


def status(
    format: options.ListFormatOption = ListFormat.TABLE,
    endpoint: options.Endpoint = None,
    api_key: options.ApiKey = None,
    cacert: options.CaCert = None,
    profile: options.Profile = None,
) -> None:
    """List the runtime's servers and whether each is up."""
    with closing(options.connect(endpoint, api_key, cacert, profile)) as client:
        _show(client, "status", {}, ("name", "endpoint", "status"), format)


def _show(
    client: "Client",
    name: str,
    query: Mapping[str, str],
    columns: tuple[str, ...],
    format: ListFormat,
) -> None:
    # These import httpx and rich, which take 0.4 s.
    from caraway.cli import tables
    from caraway.rows.formats import Format

    if format is ListFormat.TABLE:
        tables.print_table(client.rows(name, query), columns)
    else:
        body = client.listing(name, query, Format(format.value))
        sys.stdout.write(body if body.endswith("\n") else body + "\n")

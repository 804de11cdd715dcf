"""Resolves tables of other runtimes of Caraway as datasets."""

from pathlib import Path

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.settings import Address
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.flightsql.source import CarawaySource


def request(address: Address, path: str, **params: str) -> SourceRequest:
    """Return the request of a dataset over a table of a runtime."""
    given = {"caraway_endpoint": f"grpc://{address}", **params}
    root = Path("/")
    return SourceRequest(TableName("t"), "caraway", path, given, (), "read", root, root)


def resolved(address: Address, path: str, **params: str) -> RemoteTable:
    """Return a table as its source resolves it."""
    return CarawaySource().resolve(request(address, path, **params))

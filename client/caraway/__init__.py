"""The Python client library, and the `caraway` command.

    import caraway

    with caraway.Client() as client:
        table = client.sql("SELECT * FROM orders WHERE year = :year", {"year": 2024})

Imports `caraway_core` only. Everything is loaded when it is first used: `import caraway` itself
loads neither pyarrow nor httpx. The runtime's own commands are loaded by name, so `pip install
caraway` without extras installs a complete client.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caraway.async_client import AsyncClient, AsyncReader
    from caraway.client import Client
    from caraway.errors import (
        ApiError,
        BrokenResponseError,
        InvalidEndpointError,
        NotInstalledHereError,
        UnreachableError,
    )
    from caraway.management.client import AsyncManagement, Management
    from caraway.rows.readers import RecordReader
    from caraway.rows.results import SqlResult
    from caraway.statements.queries import QueryHandle, QueryState
    from caraway_core.errors import CarawayError

_HOMES = {
    "ApiError": "caraway.errors",
    "AsyncClient": "caraway.async_client",
    "AsyncManagement": "caraway.management.client",
    "AsyncReader": "caraway.async_client",
    "BrokenResponseError": "caraway.errors",
    "CarawayError": "caraway_core.errors",
    "Client": "caraway.client",
    "InvalidEndpointError": "caraway.errors",
    "Management": "caraway.management.client",
    "NotInstalledHereError": "caraway.errors",
    "QueryHandle": "caraway.statements.queries",
    "QueryState": "caraway.statements.queries",
    "RecordReader": "caraway.rows.readers",
    "SqlResult": "caraway.rows.results",
    "UnreachableError": "caraway.errors",
}

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncManagement",
    "AsyncReader",
    "BrokenResponseError",
    "CarawayError",
    "Client",
    "InvalidEndpointError",
    "Management",
    "NotInstalledHereError",
    "QueryHandle",
    "QueryState",
    "RecordReader",
    "SqlResult",
    "UnreachableError",
]


# Any: the module's attributes have different types.
def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'caraway' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

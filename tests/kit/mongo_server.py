"""A server of MongoDB's protocol: FerretDB, which `make test-clients` builds."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymongo
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import filtering

PROGRAM = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "ferretdb" / "ferretdb"
_STOP_S = 60


@dataclass(slots=True)
class MongoServer:
    """The address of the server, and a client to fill it."""

    address: str
    client: Any
    process: "subprocess.Popen[str]"

    def put(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """Create a collection, or replace it, with these documents."""
        database = self.client.test
        database.drop_collection(name)
        database.create_collection(name)
        if many := [dict(each) for each in documents]:
            database[name].insert_many(many)

    def load(self, name: str, rows: pa.Table) -> None:
        """Create or replace a collection with these rows."""
        self.put(
            name,
            (
                {key: _stored(value) for key, value in row.items() if value is not None}
                for row in rows.to_pylist()
            ),
        )

    def kill(self) -> None:
        """End it, as a power failure does."""
        self.process.kill()
        self.process.wait()

    def request(self, name: str, *declared: pa.Field, **params: str) -> SourceRequest:
        """Return the request of a dataset over a collection."""
        values = {**self.params(), **params}
        root = Path("/")
        return SourceRequest(TableName("t"), "mongodb", name, values, declared, "read", root, root)

    def params(self) -> dict[str, str]:
        """Return the params of a dataset."""
        host, _, port = self.address.removeprefix("mongodb://").rstrip("/").partition(":")
        return {
            "mongodb_host": host,
            "mongodb_port": port,
            "mongodb_db": "test",
            "mongodb_sslmode": "disabled",
            "client_timeout": "10s",
        }


def _stored(value: Any) -> Any:
    """Return a value as it is kept: FerretDB has no decimals, and BSON no days and microseconds."""
    if isinstance(value, Decimal):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else filtering.written(value)


@contextmanager
def serving() -> Iterator[MongoServer]:
    """Start a server; skip the test where it was not built."""
    if not PROGRAM.exists():
        pytest.skip("NOT TESTED: FerretDB is missing: make test-clients")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [PROGRAM.resolve(), "127.0.0.1:0", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdout is not None and process.stdin is not None
        try:
            address = process.stdout.readline().strip()
            assert address, log.seek(0) or log.read()[-2_000:]
            client: Any
            with pymongo.MongoClient(address) as client:
                yield MongoServer(address, client, process)
        finally:
            process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait(_STOP_S)

"""DynamoDB and its streams as moto imitates them, in a thread of the test process."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import boto3
import pyarrow as pa
from boto3.dynamodb.types import TypeSerializer
from moto.server import ThreadedMotoServer

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import filtering

REGION = "eu-central-1"
KEY = "AKIAEXAMPLE"
SECRET = "hunter2"
_BATCH = 25
_write = TypeSerializer().serialize


@dataclass(slots=True)
class DynamodbServer:
    """The address of the server, and a client to fill it."""

    endpoint: str
    client: Any

    def create(
        self,
        name: str,
        key: Mapping[str, str],
        others: Mapping[str, str] = MappingProxyType({}),
        /,
        **options: Any,
    ) -> None:
        """Create a table, or replace it; the key has one or two names with their types.

        `others` are the attributes of the keys of indexes.
        """
        if name in self.client.list_tables()["TableNames"]:
            self.client.delete_table(TableName=name)
        roles = zip(key, ("HASH", "RANGE"), strict=False)
        self.client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": each, "KeyType": role} for each, role in roles],
            AttributeDefinitions=[
                {"AttributeName": each, "AttributeType": kind}
                for each, kind in {**key, **others}.items()
            ],
            BillingMode="PAY_PER_REQUEST",
            **options,
        )

    def put(self, name: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Write items, as values of Python."""
        requests = [
            {"PutRequest": {"Item": {key: _write(value) for key, value in item.items()}}}
            for item in items
        ]
        for start in range(0, len(requests), _BATCH):
            self.client.batch_write_item(RequestItems={name: requests[start : start + _BATCH]})

    def load(self, name: str, rows: pa.Table) -> None:
        """Create or replace a table with these rows, whose key is a number beside them."""
        self.create(name, {"_key": "N"})
        items = ({"_key": number, **row} for number, row in enumerate(rows.to_pylist()))
        self.put(name, ({key: _stored(value) for key, value in item.items()} for item in items))

    def request(self, name: str, *declared: pa.Field, **params: str) -> SourceRequest:
        """Return the request of a dataset over a table."""
        given = {**self.params(), **params}
        root = Path("/")
        return SourceRequest(TableName("t"), "dynamodb", name, given, declared, "read", root, root)

    def params(self) -> dict[str, str]:
        """Return the params of a dataset."""
        return {
            "dynamodb_endpoint": self.endpoint,
            "dynamodb_aws_region": REGION,
            "dynamodb_aws_access_key_id": KEY,
            "dynamodb_aws_secret_access_key": SECRET,
            "client_timeout": "10s",
        }


def _stored(value: Any) -> Any:
    """Return a value as it is kept: moments and days are texts."""
    if isinstance(value, float):
        return Decimal(repr(value))
    return (
        value if isinstance(value, bool | int | Decimal | str | None) else filtering.written(value)
    )


@contextmanager
def serving() -> Iterator[DynamodbServer]:
    """Serve on a free port until the block ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    try:
        yield DynamodbServer(endpoint, client)
    finally:
        client.close()
        server.stop()

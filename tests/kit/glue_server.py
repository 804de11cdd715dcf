"""AWS Glue as moto imitates it, in a thread of the test process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.glue import GlueCatalog

REGION = "eu-central-1"
KEY = "AKIAEXAMPLE"
SECRET = "hunter2"


@dataclass(slots=True)
class GlueServer:
    """A server: a client, PyIceberg's catalog over it, and the params of datasets."""

    endpoint: str
    client: Any
    catalog: GlueCatalog

    @property
    def params(self) -> Mapping[str, str]:
        return {
            "iceberg_glue_endpoint": self.endpoint,
            "iceberg_glue_region": REGION,
            "iceberg_glue_access_key_id": KEY,
            "iceberg_glue_secret_access_key": SECRET,
            "client_timeout": "10s",
        }

    @property
    def named_params(self) -> Mapping[str, str]:
        """The params of `from: glue`."""
        return {
            "glue_endpoint": self.endpoint,
            "glue_region": REGION,
            "glue_key": KEY,
            "glue_secret": SECRET,
            "client_timeout": "10s",
        }


@contextmanager
def serving() -> Iterator[GlueServer]:
    """Serve on a free port until the block ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client("glue", **_login(endpoint))
    try:
        yield GlueServer(endpoint, client, GlueCatalog("g", client=client))
    finally:
        for each in client.get_databases()["DatabaseList"]:
            client.delete_database(Name=each["Name"])
        client.close()
        server.stop()


def _login(endpoint: str) -> dict[str, Any]:
    return {
        "endpoint_url": endpoint,
        "region_name": REGION,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }

"""A real S3 server for tests (moto), in a thread of the test process."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
KEY = "AKIAEXAMPLE"
SECRET = "wJalrXUtnFEMI-s3cr3t"


@dataclass(frozen=True, slots=True)
class S3Server:
    """The address of the server, and a client to fill it."""

    endpoint: str
    client: Any

    def bucket(self, name: str) -> None:
        location = {"LocationConstraint": REGION}
        self.client.create_bucket(Bucket=name, CreateBucketConfiguration=location)

    def put(self, bucket: str, key: str, content: bytes, is_public: bool = False) -> None:
        acl = "public-read" if is_public else "private"
        self.client.put_object(Bucket=bucket, Key=key, Body=content, ACL=acl)

    def params(self) -> dict[str, str]:
        """Return the params of a dataset with access to everything."""
        return {
            "s3_endpoint": self.endpoint,
            "s3_region": REGION,
            "s3_key": KEY,
            "s3_secret": SECRET,
            "allow_http": "true",
        }


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Serve S3 on a free port until the tests end."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    try:
        yield S3Server(endpoint, client)
    finally:
        client.close()
        server.stop()

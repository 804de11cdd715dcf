"""A real S3 server for tests (moto), in a thread of the test process."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
KEY = "AKIAEXAMPLE"
SECRET = "wJalrXUtnFEMI-s3cr3t"
Refusal = Callable[[str, str, str], int | None]
"""Returns the status of a request by its method, path and query; None: it is carried out."""
Answered = Callable[[str, str], object]
"""Called with the method and path of a request that is carried out, before its answer is sent."""


class RefusingApp:
    """The application of a server, with requests that it refuses, and what it tells of others."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.refuse: Refusal = lambda *_request: None
        self.answered: Answered = lambda *_request: None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
        status = self.refuse(*(environ[each] for each in names))
        if status is None:
            answer: Iterable[bytes] = self._app(environ, start_response)
            self.answered(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            return answer
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response(f"{status} Refused", [("content-length", "0")])
        return []


@dataclass(frozen=True, slots=True)
class S3Server:
    """The address of the server, and a client to fill it."""

    endpoint: str
    client: Any
    app: RefusingApp

    @contextmanager
    def refusing(self, refuse: Refusal) -> Iterator[None]:
        """Refuse requests."""
        before, self.app.refuse = self.app.refuse, refuse
        try:
            yield
        finally:
            self.app.refuse = before

    @contextmanager
    def telling(self, answered: Answered) -> Iterator[None]:
        """Tell of requests that are carried out, before their answers are sent."""
        before, self.app.answered = self.app.answered, answered
        try:
            yield
        finally:
            self.app.answered = before

    def bucket(self, name: str) -> None:
        location = {"LocationConstraint": REGION}
        self.client.create_bucket(Bucket=name, CreateBucketConfiguration=location)

    def put(self, bucket: str, key: str, content: bytes, is_public: bool = False) -> None:
        acl = "public-read" if is_public else "private"
        self.client.put_object(Bucket=bucket, Key=key, Body=content, ACL=acl)

    def keys(self, bucket: str) -> set[str]:
        """Return the keys of the objects of a bucket."""
        listed = self.client.list_objects_v2(Bucket=bucket)
        return {each["Key"] for each in listed.get("Contents", ())}

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
    app = RefusingApp(server._server.app)
    server._server.app = app
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
        yield S3Server(endpoint, client, app)
    finally:
        client.close()
        server.stop()

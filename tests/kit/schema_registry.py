"""A schema registry for tests, and messages in its wire format."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import fastavro
import orjson
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.client.runtime import Answer, FakeRuntime, running


def framed(number: int, content: bytes) -> bytes:
    """Return content in the wire format, with the id of its schema."""
    return b"\0" + number.to_bytes(4, "big") + content


def avro(number: int, schema: Any, value: Any) -> bytes:
    """Return a message in Avro."""
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), value)
    return framed(number, sink.getvalue())


class Registered:
    """A registry that knows some schemas."""

    def __init__(self, server: FakeRuntime) -> None:
        self.server = server
        self.url = server.endpoint

    def avro(self, number: int, schema: Any) -> None:
        document = {"schema": orjson.dumps(schema).decode()}
        self.server.answers(f"GET /schemas/ids/{number}", Answer(body=orjson.dumps(document)))

    def protobuf(
        self,
        path: str,
        file: FileDescriptorProto,
        references: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        document = {
            "schemaType": "PROTOBUF",
            "schema": base64.b64encode(file.SerializeToString()).decode(),
            "references": list(references),
        }
        self.server.answers(f"GET {path}", Answer(body=orjson.dumps(document)))

    def is_away(self, number: int) -> None:
        self.server.answers(f"GET /schemas/ids/{number}", Answer(503))


@contextmanager
def registry() -> Iterator[Registered]:
    """Run a registry."""
    with running() as server:
        yield Registered(server)

"""Servers of OpenSearch and Elasticsearch, whose classes `make test-clients` fetches."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import filtering

CLIENTS = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients"))
PROGRAM = Path(__file__).parents[1] / "e2e" / "clients" / "opensearch" / "SearchServer.java"
_STOP_S = 60
_FIELDS: Mapping[str, str] = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "bool": "boolean",
    "string": "keyword",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "timestamp[ms, tz=UTC]": "date",
    "timestamp[us]": "date",
    "timestamp[us, tz=UTC]": "date",
}


@dataclass(slots=True)
class SearchServer:
    """A server, and a client to fill it."""

    product: str
    client: httpx.Client
    process: "subprocess.Popen[str]"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to a request that has to succeed."""
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text[:2_000]
        return answer.json()

    def put(
        self,
        name: str,
        documents: Iterable[Mapping[str, Any]],
        properties: Mapping[str, Any] | None = None,
        shards: int = 1,
        **mappings: Any,
    ) -> None:
        """Create an index, or replace it, with these documents, whose ids are numbers."""
        self.client.delete(f"/{name}")
        settings = {"number_of_shards": shards, "number_of_replicas": 0}
        kept = {"properties": properties or {}, **mappings}
        self.call("PUT", f"/{name}", {"settings": settings, "mappings": kept})
        lines = []
        for number, each in enumerate(documents):
            lines += [{"index": {"_id": str(number)}}, each]
        if lines:
            answer = self.client.post(
                f"/{name}/_bulk?refresh=true",
                content="".join(f"{json.dumps(line)}\n" for line in lines),
                headers={"content-type": "application/x-ndjson"},
            ).json()
            assert not answer["errors"], str(answer)[:2_000]

    def load(self, name: str, rows: pa.Table, shards: int = 1) -> None:
        """Create or replace an index with these rows; decimals are numbers with a point."""
        properties = {
            each.name: {"type": _FIELDS.get(str(each.type), "double")} for each in rows.schema
        }
        documents = (
            {key: _stored(value) for key, value in row.items()} for row in rows.to_pylist()
        )
        self.put(name, documents, properties, shards)

    def kill(self) -> None:
        """End it, as a power failure does."""
        self.process.kill()
        self.process.wait()

    def request(self, name: str, *declared: pa.Field, **params: str) -> SourceRequest:
        """Return the request of a dataset over indexes."""
        values = {**self.params(), **params}
        root = Path("/")
        return SourceRequest(
            TableName("t"), self.product, name, values, declared, "read", root, root
        )

    def params(self) -> dict[str, str]:
        """Return the params of a dataset."""
        return {f"{self.product}_endpoint": str(self.client.base_url), "client_timeout": "20s"}


def _stored(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else filtering.written(value)


@contextmanager
def serving(product: str) -> Iterator[SearchServer]:
    """Start a server; skip the test where it, or Java, is missing."""
    jars = CLIENTS / product
    if shutil.which("java") is None or not list(jars.glob("*.jar")):
        pytest.skip(f"NOT TESTED: no java, or no {product}: make test-clients where mvn is")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        source = Path(folder) / PROGRAM.name
        source.write_text(PROGRAM.read_text().replace("org.opensearch", f"org.{product}"))
        (Path(folder) / "config").mkdir()
        process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars.resolve()}/*",
             source, folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdin is not None
        try:
            port = next((line.strip() for line in process.stdout if line.strip().isdigit()), "")
            assert port, log.seek(0) or log.read()[-2_000:]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                yield SearchServer(product, client, process)
        finally:
            process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait(_STOP_S)

"""Traces arrive at a collector over the real protocol."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from caraway_core.ids import NodeId
from caraway_scheduler.history import exporting
from caraway_scheduler.history.tasks import TaskRecord
from caraway_serving import spans
from tests.kit.processes import child

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@contextmanager
def collector(
    status: int = 200,
) -> Iterator[tuple[str, "Queue[tuple[str, dict[str, str], bytes]]"]]:
    """An OTLP endpoint that records requests and answers with a status."""
    received: Queue[tuple[str, dict[str, str], bytes]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.put((self.path, dict(self.headers), body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def test_statement_arrives_as_a_span_of_the_callers_trace(tmp_path: Path) -> None:
    with collector() as (endpoint, received):
        manifest = tmp_path / "caraway.yaml"
        manifest.write_text(
            "version: v1\nkind: Caraway\nname: traced\nruntime:\n  telemetry:\n"
            "    properties: {deployment: test}\n"
            f"    otel_exporter:\n      endpoint: '{endpoint}'\n"
            "      headers: {x-token: '${secrets:T}'}\n"
        )
        with child(tmp_path, manifest, environ={"T": "sesame"}) as caraway:
            answer = caraway.api.post(
                "/v1/sql", content="SELECT nope",
                headers={"traceparent": f"00-{TRACE}-{PARENT}-01"},
            )  # fmt: skip
            assert answer.headers["x-trace-id"] == TRACE
        path, headers, body = received.get(timeout=60)
    assert path == "/v1/traces"
    assert headers["x-token"] == "sesame"
    resource = ExportTraceServiceRequest.FromString(body).resource_spans[0]
    attributes = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (attributes["service.name"], attributes["deployment"]) == ("caraway", "test")
    span = resource.scope_spans[0].spans[0]
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == (
        "sql_query", TRACE, PARENT,
    )  # fmt: skip
    assert "column 'nope' not found" in span.status.message
    assert span.end_time_unix_nano > span.start_time_unix_nano


def test_a_stop_waits_for_no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_CLOSE_S", 0.2)
    with collector(status=503) as (endpoint, received):
        exporter = exporting.TraceExporter(endpoint, {}, NodeId("n"), {})
        exporter.listener(TaskRecord(spans.start(None), "sql_query", "SELECT 1", 1, 2))
        exporter.close()
    # The first retry would come a second later.
    assert received.qsize() <= 1


def test_unavailable_collector_blocks_nothing(tmp_path: Path) -> None:
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(
        "version: v1\nkind: Caraway\nname: traced\nruntime:\n  shutdown_timeout: 1s\n"
        "  telemetry: {otel_exporter: {endpoint: 'http://127.0.0.1:9'}}\n"
    )
    with child(tmp_path, manifest) as caraway:
        assert caraway.sql("SELECT 1 AS x").json() == [{"x": 1}]

"""Exports finished tasks to an OTLP endpoint as OpenTelemetry spans."""

import threading
from collections.abc import Callable, Mapping
from importlib import metadata

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from caraway_core.ids import NodeId
from caraway_scheduler.history.tasks import TaskRecord

_TIMEOUT_S = 10
_CLOSE_S = 2.0


class TraceExporter:
    """Sends spans in batches from a separate thread, so that a slow collector delays no query."""

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        node_id: NodeId,
        properties: Mapping[str, str],
    ) -> None:
        url = endpoint.rstrip("/")
        if not url.endswith("/v1/traces"):
            url += "/v1/traces"
        self._exporter = _Exporter(endpoint=url, headers=dict(headers), timeout=_TIMEOUT_S)
        self._processor = BatchSpanProcessor(self._exporter)
        self._scope = InstrumentationScope("caraway", metadata.version("caraway"))
        self._resource = Resource.create(
            {"service.name": "caraway", "service.instance.id": node_id, **properties}
        )

    @property
    def listener(self) -> Callable[[TaskRecord], None]:
        return lambda record: self._processor.on_end(self._span(record))

    def close(self) -> None:
        """Send the remaining spans; give up after two seconds, while a stop waits for it."""
        end_of_retries = threading.Timer(_CLOSE_S, self._exporter.shutdown)
        end_of_retries.start()
        self._processor.shutdown()  # type: ignore[no-untyped-call] # the SDK leaves it untyped
        end_of_retries.cancel()

    def _span(self, record: TaskRecord) -> ReadableSpan:
        trace_id = int(record.span.trace_id, 16)
        parent = record.span.parent_span_id
        failed = record.error_message is not None
        return ReadableSpan(
            name=record.task,
            context=_context(trace_id, record.span.span_id),
            parent=_context(trace_id, parent) if parent else None,
            kind=SpanKind.SERVER,
            resource=self._resource,
            instrumentation_scope=self._scope,
            attributes={"db.system.name": "caraway", "db.query.text": record.input,
                        **record.labels},
            start_time=record.start_ns,
            end_time=record.end_ns,
            status=Status(StatusCode.ERROR, record.error_message) if failed else Status(),
        )  # fmt: skip


class _Exporter(OTLPSpanExporter):
    """An exporter that may be shut down twice; the first time ends its retries."""

    is_closed = False

    def shutdown(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            super().shutdown()  # type: ignore[no-untyped-call] # the SDK leaves it untyped


def _context(trace_id: int, span_id: str) -> SpanContext:
    return SpanContext(trace_id, int(span_id, 16), False, TraceFlags(TraceFlags.SAMPLED))

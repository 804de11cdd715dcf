"""Logging for the process: one event per line with fields, as text or JSON."""

import datetime
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from caraway_core.settings import LogFormat

trace_id: ContextVar[str] = ContextVar("trace_id", default="")
"""The trace id of the current request; every log line of the request includes it."""
query_id: ContextVar[str] = ContextVar("query_id", default="")
"""The id of the statement that is planned or run; every log line about it includes the id."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_COMPONENTS = (
    "caraway",
    "caraway_acceleration",
    "caraway_ai",
    "caraway_assist",
    "caraway_cluster",
    "caraway_core",
    "caraway_engine",
    "caraway_executor",
    "caraway_gateway",
    "caraway_kube",
    "caraway_management",
    "caraway_operator",
    "caraway_plugins",
    "caraway_scheduler",
    "caraway_search",
    "caraway_serving",
)
_TOLD = ("ASGI callable returned without completing", "Exception in ASGI application")
_LEVELS = {"info": logging.INFO, "verbose": logging.DEBUG, "very_verbose": logging.DEBUG}


@contextmanager
def about(query: str, trace: str) -> Iterator[None]:
    """Add the ids of a statement to each log line."""
    tokens = query_id.set(query), trace_id.set(trace or trace_id.get())
    try:
        yield
    finally:
        query_id.reset(tokens[0])
        trace_id.reset(tokens[1])


def configure(format_: LogFormat, output_level: str = "info", stream: TextIO | None = None) -> None:
    """Send all log records to the stream; the default is standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else TextFormatter())
    handler.addFilter(_worth_a_line)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for component in _COMPONENTS:
        logging.getLogger(component).setLevel(_LEVELS.get(output_level, logging.INFO))


def _worth_a_line(record: logging.LogRecord) -> bool:
    # Uvicorn also logs answers that end early and unhandled route errors. Our handlers have already
    # logged both, with more detail.
    return record.name != "uvicorn.error" or not str(record.msg).startswith(_TOLD)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        event.update(_ids())
        event.update(_fields(record))
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return _json(event)


class TextFormatter(logging.Formatter):
    """Formats a record as time, level and event, then fields as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {**_fields(record), **_ids()}
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
        # A foreign text in it must not look like the next line.
        line = f"{_time(record)} {record.levelname:<7} {_printable(record.getMessage())}{pairs}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _ids() -> dict[str, object]:
    ids = {"query_id": query_id.get(), "trace_id": trace_id.get()}
    return {name: value for name, value in ids.items() if value}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    # Ray adds its own attributes to each record in a process that imports it.
    return {
        key: value
        for key, value in vars(record).items()
        if key not in _STANDARD and not key.startswith("_ray_")
    }


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds")


def _quoted(value: object) -> str:
    text = _printable(str(value))
    is_plain = text and not any(each in text for each in ' "=\\')
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _json(event: dict[str, object]) -> str:
    try:
        return json.dumps(event, default=str, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # A key that is no text, a number that is none, or a value that holds itself.
        plain = {
            key: value if isinstance(value, str) else str(value) for key, value in event.items()
        }
        return json.dumps(plain, ensure_ascii=False)


def _printable(text: str) -> str:
    """Return a text with codes for line ends, control characters and what else has no sign."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )

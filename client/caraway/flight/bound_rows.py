"""Turns the parameters of a statement into a row of Arrow columns."""

import decimal
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway.requests.arguments import Parameters
from caraway_core.errors import ParametersError


def row(parameters: Parameters) -> pa.RecordBatch:
    """Return one row with a column for each parameter.

    Raises:
        ParametersError: a value has no Arrow type.
    """
    named = (
        parameters.items()
        if isinstance(parameters, Mapping)
        else ((str(place), value) for place, value in enumerate(parameters, start=1))
    )
    columns = {f"${name.lstrip('$:')}": _column(name, value) for name, value in named}
    return pa.record_batch(list(columns.values()), names=list(columns))


def ticket(sql: str, row: pa.RecordBatch) -> bytes:
    """Return the ticket that asks for a statement with its parameters in one call."""
    schema = row.schema.with_metadata({"caraway.sql": sql})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(row.cast(schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _column(name: str, value: object) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.array([value.as_py()], value.type)
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    elif type(value).__module__.partition(".")[0] not in ("builtins", "datetime", "decimal"):
        # Numbers and arrays of numpy, and what HTTP also sends as text, such as a UUID.
        value = value.tolist() if hasattr(value, "tolist") else str(value)
    try:
        return pa.array([value])
    except OverflowError:
        return _big(name, value)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise _unsendable(name, exc) from exc


def _big(name: str, value: Any) -> pa.Array:
    try:
        return pa.array([decimal.Decimal(value)])
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise _unsendable(name, exc) from exc


def _unsendable(name: str, reason: Exception) -> ParametersError:
    return ParametersError(f"parameter '{name}' cannot be sent: {reason}")

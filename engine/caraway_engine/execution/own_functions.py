"""The function `version()`, which says what answers a statement."""

import functools
from importlib import metadata
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, udf

_LIKE = "PostgreSQL 16.0"
"""Clients of PostgreSQL read the number after this word, and choose what they send by it."""


def register(context: SessionContext) -> None:
    """Put the function in place of the engine's own."""
    context.register_udf(_version())


@functools.cache
def _version() -> Any:
    engine, own = metadata.version("datafusion"), metadata.version("caraway")
    text = pa.array([f"{_LIKE} (Caraway {own}, DataFusion {engine})"])
    # It has no arguments, so the optimizer computes it, for one row.
    return udf(lambda: text, [], pa.string(), "immutable", "version")

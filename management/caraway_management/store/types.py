"""Column types that are equal in both databases."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text, TypeDecorator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Number = BigInteger().with_variant(Integer(), "sqlite")
"""An id. SQLite numbers rows only in columns of the type INTEGER."""


class Moment(TypeDecorator[datetime]):
    """A time with its zone, kept as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


class Json(TypeDecorator[Any]):
    """A JSON value, kept as text: nothing looks into it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else json.loads(value)

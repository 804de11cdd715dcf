"""The base of all tables."""

from datetime import datetime
from typing import Any

from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

from caraway_management.store.types import Json, Moment, Number

JsonObject = dict[str, Any]


class Base(DeclarativeBase):
    """A table. Constraints have names, so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class.
        datetime: Moment,
        int: Number,
        JsonObject: Json,
        list[str]: Json,
        list[Any]: Json,
    }

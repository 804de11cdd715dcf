"""The columns by which rows of a dataset are told apart, and looked up."""

from dataclasses import dataclass
from typing import Literal

_SENT_AS = "caraway_core.tables"
Twice = Literal["refuse", "same", "first", "last"]


@dataclass(frozen=True, slots=True)
class LookupColumns:
    """Columns that are looked up together."""

    __module__ = _SENT_AS

    columns: tuple[str, ...]
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """The columns by which the rows of a dataset are told apart, and those by which they are found.

    `primary` may be empty. `twice` says what becomes of rows that are loaded with one primary key:
    they are refused, or refused unless they are the same throughout, or the first or last counts.
    """

    __module__ = _SENT_AS

    primary: tuple[str, ...] = ()
    twice: Twice = "refuse"
    indexes: tuple[LookupColumns, ...] = ()

"""Questions about statements. An engine answers them without running the statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.statements import Statement, TableWrite
from caraway_core.statements.searches import StatementSearch

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class StatementQuestion(Generic[Answer]):
    """A question about a statement; its parameter is the type of the answer."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class WriteQuestion(StatementQuestion[TableWrite | None]):
    """Which table does it change, and how? None if it only reads."""


@dataclass(frozen=True, slots=True)
class ParameterQuestion(StatementQuestion[Mapping[str, pa.DataType]]):
    """Which types do its parameters have? Null where none can be inferred."""


@dataclass(frozen=True, slots=True)
class SqlQuestion(StatementQuestion[str]):
    """Which SQL has the same answer as a Substrait plan? The statement has its limits.

    It is refused if no SQL is known to mean the same.
    """

    plan: bytes


@dataclass(frozen=True, slots=True)
class SearchQuestion(StatementQuestion[tuple[StatementSearch, ...]]):
    """Which searches does it read the rows of? They run before it."""


@dataclass(frozen=True, slots=True)
class CommitQuestion(StatementQuestion[int | None]):
    """How many rows has the commit with its mark in a table? None: the table has no such commit."""

    table: TableName

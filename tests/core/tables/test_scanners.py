"""The scanner of a table is found by the type of the table."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables import TableSpec, scanners
from caraway_core.tables.scanners import RowRequest


@dataclass(frozen=True, slots=True)
class Counted(TableSpec):
    schema: pa.Schema
    size_bytes: int = 0
    row_count: int | None = None


class CountedTwice(Counted):
    pass


class Scanner:
    def scan(self, table: Any, request: RowRequest) -> Any:
        return request.columns


def test_a_kind_of_table_has_the_scanner_that_was_registered_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanners, "_scanners", {})
    first, second = Scanner(), Scanner()
    table = Counted(pa.schema([]))
    with pytest.raises(LookupError, match="no scanner for tables of kind Counted"):
        scanners.of(table)
    scanners.register(Counted, first)
    assert scanners.of(table) is first
    scanners.register(Counted, second)
    assert scanners.of(table) is second
    # A kind that extends another one has other rows.
    with pytest.raises(LookupError, match="CountedTwice"):
        scanners.of(CountedTwice(pa.schema([])))

"""The lists of source catalogs, and how many tables stay described."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import DeclaredCatalog
from caraway_core.protocols.catalog_sources import ListedTable
from caraway_scheduler.catalog import runtime_tables, source_catalog_states, source_catalogs
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState

SPEC: Any = object()
T = TableName


def state(*tables: ListedTable, include: tuple[str, ...] = ()) -> SourceCatalogState:
    made = SourceCatalogState(
        DeclaredCatalog("pg", "postgres", "postgres", "", Path(), None, include)
    )
    made.take_list(tables, "1")
    return made


def told(over: SourceCatalogState) -> tuple[str, int, str | None]:
    return over.status, over.attempts, over.error.message if over.error else None


def test_tables_that_are_gone_or_other_leave() -> None:
    over = state(
        ListedTable("s", "same", "1"), ListedTable("s", "other", "1"), ListedTable("s", "gone")
    )
    for name in over.listed:
        over.describe(name, SPEC)
    assert over.take_list([ListedTable("s", "same", "1"), ListedTable("s", "other", "2")], "2")
    assert set(over.described) == {"pg.s.same"}
    assert not over.take_list([ListedTable("s", "same", "1"), ListedTable("s", "new")], "3")


@pytest.mark.parametrize("bad", ["a.b", 'a"b', "a/b", "a\\b", "a\nb", "", "x" * 129])
def test_names_that_statements_cannot_write_are_left_out(
    bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    over = state(ListedTable("s", bad), ListedTable(bad, "t"), ListedTable("s", "t"))
    assert set(over.listed) == {"pg.s.t"}
    assert len(caplog.records) == 1
    over.take_list([ListedTable("s", bad), ListedTable(bad, "t")], None)
    assert len(caplog.records) == 1, "it is said once"


def test_the_first_described_table_goes_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_catalog_states, "MOST_DESCRIBED", 2)
    over = state(*(ListedTable("s", name) for name in "abcd"))
    over.kept = frozenset({T("pg.s.a")})
    for name in over.listed:
        over.describe(name, SPEC)
    assert list(over.described) == ["pg.s.a", "pg.s.d"]


def test_a_failure_keeps_what_is_known() -> None:
    over = state(ListedTable("s", "t"))
    over.fail(DatasetError("unavailable", "no route"))
    assert told(over) == ("error", 1, "catalog 'pg': no route")
    assert set(over.listed) == {"pg.s.t"}
    over.take_list([], None)
    assert told(over) == ("ready", 0, None)


def test_all_names_are_a_table() -> None:
    assert runtime_tables.catalog_tables({}).num_rows == 0
    found = runtime_tables.catalog_tables({"pg": state(ListedTable("s", "t"))})
    assert found == pa.table(
        {"table_catalog": ["pg"], "table_schema": ["s"], "table_name": ["t"]},
        schema=runtime_tables.CATALOG_TABLES,
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("pg.s.ordrs", "; did you mean 'pg.s.Orders'? Names with capitals need double quotes."),
        ("pg.s.people_", "; did you mean 'pg.s.people'?"),
        ("pg.s.zzz", ": schema 'pg.s' has no table of this name"),
        ("pg.sale.people", ": catalog 'pg' has no schema 'sale'; did you mean 'sales'?"),
        ("pg.zzz.people", ": catalog 'pg' has no schema 'zzz'"),
    ],
)
def test_the_nearest_name_is_named(table: str, said: str) -> None:
    known = [T("pg.s.Orders"), T("pg.s.people"), T("pg.sales.x")]
    assert source_catalogs.name_hint(T(table), known) == said
    assert source_catalogs.name_hint(T(table), ()) == "; catalog 'pg' has no tables"

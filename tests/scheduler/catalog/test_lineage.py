"""The lineage of tables among many views."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.sqltext import mentions
from caraway_scheduler.catalog import lineage
from caraway_scheduler.catalog.states import DatasetState, ViewState

ROWS, SUMS, TOP = TableName("sales.rows"), TableName("sums"), TableName("top")
DATASETS = {ROWS: DatasetState(Dataset("sales.rows", "file:a.csv", "file", "a.csv", Path("/")))}
QUERIES = {
    SUMS: 'SELECT sum(v) AS s FROM "sales"."rows"',
    TOP: "SELECT * FROM SUMS ORDER BY s LIMIT 1",
    TableName("other"): "SELECT 'nothing' AS n",
}


def views() -> dict[TableName, ViewState]:
    return {name: ViewState(View(str(name), sql, Path("/"))) for name, sql in QUERIES.items()}


@pytest.mark.parametrize(
    ("name", "reads", "read_by"),
    [
        (ROWS, (), (SUMS,)),
        (SUMS, (ROWS,), (TOP,)),
        (TOP, (SUMS,), ()),
        (TableName("other"), (), ()),
    ],
)
def test_a_table_has_what_it_reads_and_what_reads_it(
    name: TableName, reads: tuple[TableName, ...], read_by: tuple[TableName, ...]
) -> None:
    found = lineage.of(name, DATASETS, views(), {})
    assert (found.reads, found.read_by) == (reads, read_by)


def test_texts_that_do_not_name_a_table_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    mentioned = mentions.mentioned

    def noted(sql: str, known: Iterable[TableName]) -> set[TableName]:
        read.append(sql)
        return mentioned(sql, known)

    monkeypatch.setattr(mentions, "mentioned", noted)
    lineage.of(SUMS, DATASETS, views(), {})
    assert sorted(read) == sorted((QUERIES[SUMS], QUERIES[TOP]))

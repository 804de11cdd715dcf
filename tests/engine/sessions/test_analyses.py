"""The analysis of a statement for its stages: joins in a good order, or as they are."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.join_orders import OrderPolicy
from caraway_engine.sessions import distribution
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.sessions.sessions import Session
from caraway_engine.stages.relations import kind, table_name, walk
from tests.kit.engine import memory, session
from tests.kit.tables import parquet

T, P = TableName("t"), TableName("p")
LOOKED_UP = (
    "SELECT sum(v) FROM t JOIN p ON pk = k WHERE name = 'b' "
    "AND v < (SELECT avg(v) FROM t WHERE k = pk)"
)
"""The grouping of the average needs few of its keys."""
CHANGED = OrderPolicy(inf, -inf, inf, -inf)


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return planned(tmp_path_factory.mktemp("analyses"))


def planned(folder: Path) -> Session:
    rows = pa.table({"k": [n % 500 for n in range(3_000)], "v": list(range(3_000))})
    names = pa.table({"pk": list(range(500)), "name": ["b" if n < 5 else "c" for n in range(500)]})
    tables = {"t": parquet(folder / "t", rows, 2), "p": parquet(folder / "p", names, 1)}
    made = session({**tables, "m": memory(k=[1, 2])})
    made._statements.reruns.policy = CHANGED
    return made


def reads(analysis: Analysis) -> dict[TableName, int]:
    assert analysis.plan is not None
    found = [table_name(each) for each in walk(analysis.plan.relations[0].root.input)
             if kind(each) == "read"]  # fmt: skip
    return {name: found.count(name) for name in found}


def analysed(of: Session, statement: Statement) -> tuple[Analysis, Analysis]:
    plain = of.analyse(statement)
    return plain, of.staged(statement, plain)


def test_groupings_that_a_join_looks_up_read_the_keys_first(of: Session) -> None:
    plain, staged = analysed(of, Statement(LOOKED_UP, {}))
    assert reads(plain) == {T: 2, P: 1}
    assert reads(staged)[P] > 1
    assert staged.schema == plain.schema
    assert (staged.tables, staged.written) == (plain.tables, None)


def test_rows_of_joins_are_estimated(of: Session) -> None:
    sql = "SELECT sum(v) FROM t JOIN p ON pk = k WHERE name = 'b'"
    plain, staged = analysed(of, Statement(sql, {}))
    assert plain.joined_rows == {}
    assert 0 < staged.joined_rows[frozenset({T, P})] < 3_000


def test_it_is_analysed_once(of: Session) -> None:
    statement = Statement(LOOKED_UP + " -- once", {})
    plain, staged = analysed(of, statement)
    assert of.staged(statement, plain) is staged
    assert of.recall(statement) is plain


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t",
        "SELECT count(*) FROM t JOIN p ON pk = k WHERE random() < 2",
    ],
)
def test_other_statements_stay_as_they_are(of: Session, sql: str) -> None:
    plain, staged = analysed(of, Statement(sql, {}))
    assert staged is plain


def test_plan_that_is_not_kept_stays_as_it_is(of: Session) -> None:
    plain = of.analyse(Statement(LOOKED_UP, {}))
    assert of.staged(Statement(LOOKED_UP + " -- another", {}), plain) is plain


def test_order_that_cannot_be_divided_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = planned(tmp_path)
    plain = of.analyse(Statement(LOOKED_UP, {}))

    def refused(*arguments: object, **named: object) -> Analysis:
        return replace(plain, plan=None, objection="too deep")

    monkeypatch.setattr(distribution, "analyse", refused)
    assert of.staged(Statement(LOOKED_UP, {}), plain).plan is plain.plan


class ReorderedError(Exception):
    """A kind that no other test logs."""


def test_error_in_another_order_is_logged_and_none_of_the_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    of = planned(tmp_path)
    texts = LOOKED_UP, LOOKED_UP + " -- again"
    plains = [of.analyse(Statement(text, {})) for text in texts]

    def fails(*arguments: object, **named: object) -> Analysis:
        raise ReorderedError("Substrait error: no such field 'secret'")

    monkeypatch.setattr(distribution, "analyse", fails)
    with caplog.at_level("INFO", "caraway_engine.join_orders"):
        for text, plain in zip(texts, plains, strict=True):
            assert of.staged(Statement(text, {}), plain).plan is plain.plan
    assert [vars(each)["kind"] for each in caplog.records] == ["ReorderedError: Substrait error"]
    assert "secret" not in caplog.text

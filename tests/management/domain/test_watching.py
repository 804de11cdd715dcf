import json
from pathlib import Path
from typing import Any

import pytest

from caraway_management.domain import alerts, reactions, watching
from caraway_management.domain.refusals import RefusedError
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

KEPT = """
    datasets:
      - from: memory:kept
        name: kept
        access: read_write
        columns: [{name: id, type: bigint}, {name: v, type: text}]
    """
WRITES = [
    "INSERT INTO kept VALUES (3, 'c')",
    "DELETE FROM kept",
    "UPDATE kept SET id = 3",
    "SELECT * INTO more FROM kept",
    "WITH a AS (DELETE FROM kept RETURNING id) SELECT * FROM a",
    "SELECT 1) AS a; DELETE FROM kept; SELECT * FROM (SELECT 1",
    "SELECT 1) AS a; DELETE FROM kept --",
]


def _match(**values: Any) -> dict[str, Any]:
    return reactions.read_spec("dataset_row_match", {"dataset": "kept", "where": "id > 1"} | values)


def _query(sql: str, **values: Any) -> dict[str, Any]:
    return reactions.read_spec("dataset_query", {"query": sql} | values)


def test_what_is_left_out_of_a_spec() -> None:
    assert _match() == {
        "dataset": "kept", "where": "id > 1", "minRows": 1, "sustainSecs": 0, "severity": "warn",
        "includeDetails": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("dataset_row_match", {"where": "true"}, "spec.dataset: is missing"),
        ("dataset_row_match", {"dataset": "kept"}, "spec.where: is missing"),
        ("dataset_row_match", {"dataset": "kept", "where": " "}, "must not be blank"),
        ("dataset_query", {}, "spec.query: is missing"),
        ("dataset_query", {"query": "SELECT '\0'"}, "control characters"),
        ("dataset_query", {"query": "x" * 8_193}, "at most 8192 characters"),
        ("dataset_query", {"query": "SELECT 1", "minRows": 101}, "must be 1 to 100"),
        ("dataset_query", {"query": "SELECT 1", "where": "true"}, "is not used by"),
        ("dataset_query", {"query": "SELECT 1", "tasks": []}, "is not used by"),
        ("task_history_error", {"query": "SELECT 1"}, "is not used by"),
    ],
)
def test_specs_that_do_not_fit(kind: str, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        reactions.read_spec(kind, spec)


def test_names_of_datasets_are_quoted() -> None:
    sql = watching.statement("dataset_row_match", _match(dataset='a."b" WHERE 1=1; --'))
    assert ' FROM "a"."""b"" WHERE 1=1; --" WHERE (\nid > 1\n) LIMIT 100' in sql


def test_notices_show_a_bounded_part_of_the_rows() -> None:
    wide = {f"c{number}": "x" * 10_000 for number in range(100)}
    measured = watching.measure([wide] * 1_000)
    assert measured.value == 100
    assert len(json.dumps(measured.details)) < 100_000
    odd = {"a": float("nan"), "b": 10**400, "c": ["\ud800"], "d": "\ud800", "e": None, "f": 1.5}
    [shown] = watching.measure([odd]).details["rows"]
    assert (shown["a"], shown["d"], shown["e"], shown["f"]) == ("NaN", "?", None, 1.5)
    json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()


def test_reasons_are_one_short_line() -> None:
    reason = watching.refused("no table\n'\0x\ud800'" + "y" * 5_000).reason
    assert reason is not None
    assert reason.startswith("the runtime refused the query: no table ' x?'y")
    assert len(reason) < 400


def test_summaries() -> None:
    assert watching.summary("dataset_query", {}, 1) == "The query returns 1 row."
    assert watching.summary("dataset_query", {}, 100) == "The query returns 100 rows or more."
    assert watching.summary("dataset_row_match", _match(), 2) == "2 rows of dataset 'kept' match."


def test_alerts_of_new_projects() -> None:
    assert [alert.template for alert in alerts.chosen(None)] == ["storage"]
    assert alerts.chosen(False) == ()
    assert len({alert.name for alert in alerts.chosen(True)}) == 4


async def test_a_real_runtime_reads_rows_and_writes_none(tmp_path: Path) -> None:
    async with running(tmp_path, KEPT) as runtime:
        await runtime.sql("INSERT INTO kept VALUES (1, 'a'), (2, 'b')")

        async def rows(kind: str, spec: dict[str, Any]) -> Any:
            answer = await runtime.sql(watching.statement(kind, spec))
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert await rows("dataset_row_match", _match()) == [{"id": 2, "v": "b"}]
        assert await rows("dataset_row_match", _match(where="v = 'a' -- only")) == [
            {"id": 1, "v": "a"}
        ]
        assert await rows("dataset_query", _query("WITH a AS (SELECT 1 AS x) SELECT * FROM a")) == [
            {"x": 1}
        ]
        many = "SELECT value FROM generate_series(1, 1000)"
        assert len(await rows("dataset_query", _query(many))) == watching.MOST_ROWS
        for sql in WRITES:
            for kind, spec in (
                ("dataset_query", _query(sql)),
                ("dataset_row_match", _match(where=sql.replace("SELECT 1)", "true)"))),
            ):
                answer = await runtime.sql(watching.statement(kind, spec))
                assert answer.status_code == 400, (sql, answer.text)
        assert len(await rows("dataset_query", _query("SELECT * FROM kept"))) == 2

        async def failures() -> list[str]:
            found = (await runtime.sql(reactions.statement(0, None))).json()
            return [task.input for task in reactions.read_tasks(found)]

        async def is_there() -> bool:
            return "SELECT nope" in await failures()

        # Queries that were refused are not events of other reactions.
        await runtime.sql("SELECT nope")
        await eventually(is_there, "the failure is in the history", 30)
        assert await failures() == ["SELECT nope"]

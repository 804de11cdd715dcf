"""Requirements for sources whose columns are not those of rows that a test chooses."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import MemoryTable, TableSpec
from caraway_plugins.sources.github.lists import LISTS
from tests.conformance.served_sources import SERVED
from tests.conformance.source_kinds import SOURCES
from tests.kit import github_server
from tests.kit.api_server import ApiServer
from tests.kit.engine import rows, session
from tests.kit.graphql_server import connection

AT = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
SCHEMA = LISTS["issues"].schema
ISSUES = pa.Table.from_pylist(
    [
        {
            "assignees": ["bob"] if number % 2 else [], "author": "ann" if number else None,
            "body": "it's ä", "closed_at": AT if number % 3 else None, "comments_count": 1,
            "created_at": AT, "id": f"I_{number}", "labels": ["a", "b"], "number": number,
            "state": "OPEN" if number < 4 else "CLOSED", "title": f"t{number}", "updated_at": AT,
            "url": f"https://github.com/owner/repo/issues/{number}",
            "comments": [{"author": None, "body": "c"}], "milestone_id": None,
            "milestone_title": None,
        }
        for number in range(7)
    ],
    schema=SCHEMA,
)  # fmt: skip
STATEMENTS = [
    "SELECT * FROM t",
    "SELECT title, number FROM t WHERE state = 'OPEN' AND number >= 2",
    "SELECT number FROM t WHERE updated_at >= TIMESTAMPTZ '2024-02-29T12:30:00Z'",
    "SELECT number FROM t WHERE author IS NULL OR closed_at IS NULL",
    "SELECT state, count(*), sum(number), max(title) FROM t GROUP BY state",
    "SELECT a.number, b.title FROM t AS a JOIN t AS b ON a.number = b.number + 1",
    "SELECT title FROM t ORDER BY number DESC LIMIT 3",
    "SELECT labels[1], comments[1]['body'] FROM t WHERE number = 1",
    "SELECT count(*) FROM t",
    "SELECT number FROM t LIMIT 0",
]


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A dataset with the rows of `ISSUES`, one that is not there, and the tables beside them."""

    there: SourceRequest
    absent: SourceRequest
    beside: Mapping[str, TableSpec] = field(default_factory=dict)
    missing: str = "not_found"


def _request(connector: str, path: str, params: Mapping[str, str]) -> SourceRequest:
    root = Path("/")
    return SourceRequest(TableName("t"), connector, path, params, (), "read", root, root)


def _node(issue: Mapping[str, Any]) -> Mapping[str, Any]:
    at = "2024-02-29T12:30:00Z"
    author = issue["author"] and {"__typename": "User", "login": issue["author"]}
    return {
        **{name: issue[name] for name in ("id", "number", "title", "body", "state", "url")},
        "author": author, "milestone": None, "createdAt": at, "updatedAt": at,
        "closedAt": issue["closed_at"] and at,
        "assignees": connection([{"login": each} for each in issue["assignees"]]),
        "labels": connection([{"name": each} for each in issue["labels"]]),
        "comments": connection(issue["comments"]),
    }  # fmt: skip


def _github(api: ApiServer) -> OwnTable:
    issues = github_server.paged([_node(each) for each in ISSUES.to_pylist()], [])
    github_server.load(api, {"issues": issues}, {})
    params = {"github_token": github_server.TOKEN, "github_endpoint": api.url}
    there = _request("github", "github.com/owner/repo/issues", params)
    return OwnTable(there, _request("github", "github.com/owner/none/issues", params))


def _localpod(_api: ApiServer) -> OwnTable:
    beside = {"sales.orders": MemoryTable(SCHEMA, ISSUES)}
    return OwnTable(_request("localpod", "sales.orders", {}), _request("localpod", "", {}), beside,
                    missing="invalid")  # fmt: skip


OWN: Mapping[str, Callable[[ApiServer], OwnTable]] = {"github": _github, "localpod": _localpod}
ELSEWHERE = {
    "abfss": "it is file in another store, see tests/plugins/sources",
    "caraway": "it is flightsql",
    "cdc": "it has changes only, see test_change_sources",
    "debezium": "it has changes only, see test_change_sources",
    "glue": "it is iceberg, see tests/plugins/sources/iceberg/test_named_glue.py",
    "gs": "it is file in another store, see tests/plugins/sources",
    "https": "it is http",
    "kafka": "it has changes only, see test_change_sources",
    "memory": "its rows are in the manifest or are changes",
    "s3": "it is file in another store, see tests/gateway/api/test_object_store.py",
}


@pytest.fixture(params=sorted(OWN))
def connector(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(connector: str, api: ApiServer) -> OwnTable:
    return OWN[connector](api)


@pytest.fixture
def source(connector: str) -> Source:
    made: Source = registry.SOURCES.load(connector)()
    return made


def test_every_source_is_in_one_suite() -> None:
    suites = [set(SOURCES) - {"arrow_file"}, set(SERVED), set(OWN), set(ELSEWHERE)]
    assert set().union(*suites) == set(registry.SOURCES)
    assert sum(map(len, suites)) == len(set(registry.SOURCES))


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_own_rows_have_the_answers_of_the_engine(
    table: OwnTable, source: Source, sql: str
) -> None:
    over = session({**table.beside, "t": source.resolve(table.there)})
    expected = session({"t": MemoryTable(SCHEMA, ISSUES)})
    found = [sorted(map(repr, await rows(each, sql))) for each in (over, expected)]
    assert found[0] == found[1]


def test_own_spec_goes_to_other_processes_and_shows_no_secret(
    table: OwnTable, source: Source
) -> None:
    spec = source.resolve(table.there)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert github_server.TOKEN not in repr(spec)


def test_declaration_of_own_columns_says_which_params_there_are(
    connector: str, table: OwnTable, source: Source
) -> None:
    declared = registry.connector(connector)
    assert declared.has_changes == source.capabilities.changes
    assert declared.params is not None and all(map(declared.has_param, table.there.params))
    assert not (source.capabilities.writes or source.capabilities.splits)
    assert declared.is_copying == (connector == "localpod")


def test_what_a_source_of_own_columns_lacks_is_said(table: OwnTable, source: Source) -> None:
    with pytest.raises(DatasetError) as caught:
        source.resolve(table.absent)
    assert caught.value.type == table.missing
    assert github_server.TOKEN not in caught.value.message

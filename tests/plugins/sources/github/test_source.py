"""Tables of a repository, from a server with a part of GitHub's schema."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import DatasetError
from tests.kit import github_server
from tests.kit.api_server import ApiAnswer, ApiServer
from tests.kit.graphql_server import connection
from tests.plugins.sources import reading

AT = "2024-02-29T12:30:00Z"
MOMENT = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
FILES = {"README.md": b"# x\n", "docs/a.json": b"{}", "docs/b/c.yaml": "ä".encode(), "x": b"\xff"}


def issue(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"I_{number}", "number": number, "title": f"t{number}", "body": "b",
        "state": "OPEN", "url": f"https://github.com/owner/repo/issues/{number}",
        "author": {"__typename": "User", "login": "ann"}, "milestone": None,
        "createdAt": AT, "updatedAt": AT, "closedAt": None,
        "assignees": connection([{"login": "bob"}]),
        "labels": connection([{"name": "bug"}, {"name": "db"}]),
        "comments": connection([{"author": None, "body": "c"}]),
        **more,
    }  # fmt: skip


def commit(number: int) -> dict[str, Any]:
    return {
        "__typename": "Commit", "id": f"C_{number}", "oid": str(number) * 40,
        "message": "a\n\nb", "messageBody": "b", "messageHeadline": "a", "committedDate": AT,
        "additions": number, "deletions": 0, "author": {"name": "Ann", "email": "a@x"},
    }  # fmt: skip


@pytest.fixture
def asked() -> list[Mapping[str, Any]]:
    return []


@pytest.fixture
def github(server: ApiServer, asked: list[Mapping[str, Any]]) -> ApiServer:
    pulls = [
        issue(9, state="MERGED", mergedAt=AT, additions=3, deletions=1, changedFiles=2,
              commits=connection([{"commit": commit(1)}]), reviews=connection([]))
    ]  # fmt: skip
    user = {"login": "ann", "name": None, "email": "", "company": "x", "twitterUsername": "t",
            "location": None, "avatarUrl": "https://a", "bio": None}  # fmt: skip
    history = github_server.paged([commit(number) for number in range(3)], asked)
    repository = {
        "issues": github_server.paged([issue(number) for number in range(1, 6)], asked),
        "pullRequests": github_server.paged(pulls, asked),
        "stargazers": github_server.paged([{"starredAt": AT, "cursor": "", "node": user}], asked),
        "defaultBranchRef": {"target": {"__typename": "Commit", "history": history}},
    }
    github_server.load(server, repository, FILES)
    return server


def dataset(github: ApiServer, tmp_path: Path, path: str, **params: str) -> reading.Dataset:
    given = {"github_token": github_server.TOKEN, "github_endpoint": github.url, **params}
    return reading.Dataset("github", path, tmp_path, given)


def refusal(of: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        of.resolve()
    return caught.value


@pytest.mark.parametrize("path", ["github.com/owner/repo/issues", "owner/repo/issues"])
def test_issues_are_rows(path: str, github: ApiServer, tmp_path: Path) -> None:
    found = dataset(github, tmp_path, path).rows("SELECT * FROM t ORDER BY number")
    assert [each["number"] for each in found] == [1, 2, 3, 4, 5]
    assert found[0] == {
        "assignees": ["bob"], "author": "ann", "body": "b", "closed_at": None,
        "comments_count": 1, "created_at": MOMENT, "id": "I_1", "labels": ["bug", "db"],
        "number": 1, "state": "OPEN", "title": "t1", "updated_at": MOMENT,
        "url": "https://github.com/owner/repo/issues/1",
        "comments": [{"author": None, "body": "c"}], "milestone_id": None,
        "milestone_title": None,
    }  # fmt: skip


def test_pull_requests_are_rows(github: ApiServer, tmp_path: Path) -> None:
    (found,) = dataset(github, tmp_path, "owner/repo/pulls").rows()
    assert (found["state"], found["merged_at"], found["hashes"]) == ("MERGED", MOMENT, ["1" * 40])
    assert (found["commits_count"], found["reviews_count"], found["changed_files"]) == (1, 0, 2)


def test_commits_are_rows(github: ApiServer, tmp_path: Path) -> None:
    found = dataset(github, tmp_path, "owner/repo/commits").rows("SELECT * FROM t ORDER BY id")
    assert [each["additions"] for each in found] == [0, 1, 2]
    assert (found[0]["author_email"], found[0]["message_head_line"]) == ("a@x", "a")


def test_a_repository_without_commits_has_no_rows(server: ApiServer, tmp_path: Path) -> None:
    github_server.load(server, {"defaultBranchRef": None}, {})
    assert dataset(server, tmp_path, "owner/repo/commits").rows() == []


def test_stargazers_are_rows(github: ApiServer, tmp_path: Path) -> None:
    (found,) = dataset(github, tmp_path, "owner/repo/stargazers").rows()
    assert (found["starred_at"], found["login"], found["x_username"]) == (MOMENT, "ann", "t")


def test_only_the_columns_of_a_statement_are_asked(github: ApiServer, tmp_path: Path) -> None:
    of = dataset(github, tmp_path, "owner/repo/issues")
    assert len(of.rows("SELECT title FROM t WHERE author = 'ann'")) == 5
    body = github.requests[-1].body
    assert "title" in body and "author" in body and "labels" not in body and "comments" not in body


@pytest.mark.parametrize(
    ("path", "where", "sent"),
    [
        ("issues", "state = 'OPEN'", {"states": ["OPEN"]}),
        ("issues", "updated_at >= TIMESTAMPTZ '2024-01-01T00:00:00Z'",
         {"filterBy": {"since": "2024-01-01T00:00:00Z"}}),
        ("commits", "committed_date < TIMESTAMPTZ '2024-01-01T00:00:00.5Z'",
         {"until": "2024-01-01T00:00:01Z"}),
        ("commits", "committed_date > TIMESTAMPTZ '2024-01-01T00:00:00.5Z'",
         {"since": "2024-01-01T00:00:00Z"}),
        ("issues", "state = 'other'", {}),
        ("issues", "title = 'OPEN'", {}),
        ("pulls", "state = 'MERGED'", {"states": ["MERGED"]}),
        ("commits", "committed_date > TIMESTAMPTZ '2024-01-01T00:00:00Z'",
         {"since": "2024-01-01T00:00:00Z"}),
    ],
)  # fmt: skip
def test_filters_are_sent_as_arguments(
    path: str,
    where: str,
    sent: Mapping[str, Any],
    github: ApiServer,
    tmp_path: Path,
    asked: list[Mapping[str, Any]],
) -> None:
    dataset(github, tmp_path, f"owner/repo/{path}").rows(f"SELECT id FROM t WHERE {where}")
    assert {name: each for name, each in asked[-1].items() if name != "first"} == sent


def test_a_limit_asks_for_fewer_rows(
    github: ApiServer, tmp_path: Path, asked: list[Mapping[str, Any]]
) -> None:
    of = dataset(github, tmp_path, "owner/repo/issues")
    assert len(of.rows("SELECT id FROM t LIMIT 1")) == 1
    assert len(of.rows("SELECT id FROM t")) == 5
    assert asked[0]["first"] == 1 and asked[-1]["first"] == 100


def test_files_are_rows(github: ApiServer, tmp_path: Path) -> None:
    of = dataset(github, tmp_path, "owner/repo/files/main")
    found = of.rows("SELECT * FROM t ORDER BY path")
    contents = {each["path"]: each["content"] for each in found}
    assert contents == {"README.md": "# x\n", "docs/a.json": "{}", "docs/b/c.yaml": "ä", "x": None}
    assert (found[2]["name"], found[2]["size"], found[2]["mode"]) == ("c.yaml", 2, "100644")
    assert found[0]["download_url"] == (
        "https://raw.githubusercontent.com/owner/repo/main/README.md"
    )


def test_contents_are_read_only_where_a_statement_has_them(
    github: ApiServer, tmp_path: Path
) -> None:
    of = dataset(github, tmp_path, "owner/repo/files/main", include="**/*.json; docs/**/*.yaml")
    assert of.rows("SELECT path FROM t ORDER BY path") == [
        {"path": "docs/a.json"},
        {"path": "docs/b/c.yaml"},
    ]
    assert not any("/blobs/" in each.path for each in github.requests)
    assert len(of.rows("SELECT content FROM t")) == 2
    assert sum("/blobs/" in each.path for each in github.requests) == 2


def test_trees_that_are_cut_are_refused(github: ApiServer, tmp_path: Path) -> None:
    github.say("/repos/owner/repo/git/trees/main", {"tree": [], "truncated": True})
    assert refusal(dataset(github, tmp_path, "owner/repo/files/main")).type == "unsupported"


def test_refusals_are_told_apart_and_show_no_token(github: ApiServer, tmp_path: Path) -> None:
    assert "hidden" not in repr(dataset(github, tmp_path, "owner/repo/issues").resolve())
    found = refusal(dataset(github, tmp_path, "owner/repo/issues", github_token="ghp_wrong"))
    assert found.type == "auth" and "github_token" in found.message
    assert "ghp_wrong" not in found.message
    assert refusal(dataset(github, tmp_path, "owner/other/issues")).type == "not_found"
    assert refusal(dataset(github, tmp_path, "owner/repo/files/none")).type == "not_found"


def test_a_used_up_rate_limit_says_how_long(github: ApiServer, tmp_path: Path) -> None:
    headers = {"x-ratelimit-remaining": "0", "retry-after": "1800"}
    github.answers["/graphql"] = lambda _: ApiAnswer({"message": "limit"}, 403, headers)
    found = refusal(dataset(github, tmp_path, "owner/repo/issues"))
    assert found.type == "unavailable" and "1800 s" in found.message


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("owner/repo", {}),
        ("owner/repo/wiki", {}),
        ("owner/repo/files", {}),
        ("owner/repo/issues/7", {}),
        ("owner/../issues", {}),
        ("owner/repo/files/../../../user", {}),
        ("owner/repo/issues", {"include": "*"}),
        ("owner/repo/issues", {"github_query_mode": "fast"}),
    ],
)
def test_paths_and_params_that_name_nothing_are_refused(
    path: str, params: dict[str, str], github: ApiServer, tmp_path: Path
) -> None:
    assert refusal(dataset(github, tmp_path, path, **params)).type == "invalid"
    assert not github.requests

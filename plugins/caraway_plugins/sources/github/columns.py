"""The columns of the tables of a repository, and the GraphQL that each of them needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

MOST_NESTED = 100
"""The labels, assignees, comments or commits of one row that are read: GitHub's largest page."""
_MOMENT = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(pa.string())
_COMMENTS = pa.list_(pa.struct([("author", pa.string()), ("body", pa.string())]))


@dataclass(frozen=True, slots=True)
class GithubColumn:
    """A column: a selection of GraphQL with its name as alias, and the place of its value.

    Where a step is a list, the value is a list of the values that the further steps lead to. With
    `fields`, these are structs.
    """

    name: str
    type: pa.DataType
    selection: str
    steps: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]] | None = None

    def value(self, node: Mapping[str, object]) -> object:
        """Return the value of a node of an answer."""
        found = _found(node, self.steps)
        if self.fields is None or not isinstance(found, list):
            return found
        return [
            {name: _found(each, steps) for name, steps in self.fields.items()} for each in found
        ]


def _found(value: object, steps: Sequence[str]) -> object:
    for number, step in enumerate(steps):
        if isinstance(value, list):
            return [_found(each, steps[number:]) for each in value]
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _plain(name: str, type_: pa.DataType, field: str) -> GithubColumn:
    return GithubColumn(name, type_, f"{name}: {field}", (name,))


def _inner(name: str, field: str, inner: str, type_: pa.DataType | None = None) -> GithubColumn:
    return GithubColumn(name, type_ or pa.string(), f"{name}: {field} {{ {inner} }}", (name, inner))


def _count(name: str, field: str) -> GithubColumn:
    return _inner(name, field, "totalCount", pa.int64())


def _list(name: str, field: str, inner: str, *steps: str) -> GithubColumn:
    selection = f"{name}: {field}(first: {MOST_NESTED}) {{ nodes {{ {inner} }} }}"
    return GithubColumn(name, _TEXTS, selection, (name, "nodes", *steps))


def _of_user(name: str, field: str) -> GithubColumn:
    return GithubColumn(name, pa.string(), f"node {{ {name}: {field} }}", ("node", name))


_COMMON = (
    _list("assignees", "assignees", "login", "login"),
    _inner("author", "author", "login"),
    _plain("body", pa.string(), "body"),
    _plain("closed_at", _MOMENT, "closedAt"),
    _count("comments_count", "comments"),
    _plain("created_at", _MOMENT, "createdAt"),
    _plain("id", pa.string(), "id"),
    _list("labels", "labels", "name", "name"),
    _plain("number", pa.int64(), "number"),
    _plain("state", pa.string(), "state"),
    _plain("title", pa.string(), "title"),
    _plain("updated_at", _MOMENT, "updatedAt"),
    _plain("url", pa.string(), "url"),
)
ISSUES = (
    *_COMMON,
    GithubColumn(
        "comments",
        _COMMENTS,
        f"comments: comments(first: {MOST_NESTED}) {{ nodes {{ author {{ login }} body }} }}",
        ("comments", "nodes"),
        {"author": ("author", "login"), "body": ("body",)},
    ),
    _inner("milestone_id", "milestone", "id"),
    _inner("milestone_title", "milestone", "title"),
)
PULLS = (
    *_COMMON,
    _plain("additions", pa.int64(), "additions"),
    _plain("changed_files", pa.int64(), "changedFiles"),
    _count("commits_count", "commits"),
    _plain("deletions", pa.int64(), "deletions"),
    _list("hashes", "commits", "commit { oid }", "commit", "oid"),
    _plain("merged_at", _MOMENT, "mergedAt"),
    _count("reviews_count", "reviews"),
)
COMMITS = (
    _plain("additions", pa.int64(), "additions"),
    _inner("author_email", "author", "email"),
    _inner("author_name", "author", "name"),
    _plain("committed_date", _MOMENT, "committedDate"),
    _plain("deletions", pa.int64(), "deletions"),
    _plain("id", pa.string(), "id"),
    _plain("message", pa.string(), "message"),
    _plain("message_body", pa.string(), "messageBody"),
    _plain("message_head_line", pa.string(), "messageHeadline"),
    _plain("sha", pa.string(), "oid"),
)
STARGAZERS = (
    _plain("starred_at", _MOMENT, "starredAt"),
    _of_user("login", "login"),
    _of_user("email", "email"),
    _of_user("name", "name"),
    _of_user("company", "company"),
    _of_user("x_username", "twitterUsername"),
    _of_user("location", "location"),
    _of_user("avatar_url", "avatarUrl"),
    _of_user("bio", "bio"),
)

"""Columns of repositories: the values of nodes, of which parts may be null."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_plugins.sources.github import columns
from caraway_plugins.sources.github.columns import GithubColumn

_ALL = {"issues": columns.ISSUES, "pulls": columns.PULLS, "commits": columns.COMMITS,
        "stargazers": columns.STARGAZERS}  # fmt: skip
_ISSUES = {each.name: each for each in columns.ISSUES}
_PULLS = {each.name: each for each in columns.PULLS}


@pytest.mark.parametrize(
    ("column", "node", "value"),
    [
        (_ISSUES["title"], {"title": "a"}, "a"),
        (_ISSUES["title"], {}, None),
        (_ISSUES["author"], {"author": {"login": "a"}}, "a"),
        (_ISSUES["author"], {"author": None}, None),
        (_ISSUES["comments_count"], {"comments_count": {"totalCount": 3}}, 3),
        (_ISSUES["labels"], {"labels": {"nodes": [{"name": "a"}, {"name": "b"}]}}, ["a", "b"]),
        (_ISSUES["labels"], {"labels": {"nodes": []}}, []),
        (_ISSUES["labels"], {"labels": {"nodes": [None, {"name": "b"}]}}, [None, "b"]),
        (_ISSUES["labels"], {"labels": None}, None),
        (_PULLS["hashes"], {"hashes": {"nodes": [{"commit": {"oid": "f"}}, {"commit": None}]}},
         ["f", None]),
        (_ISSUES["comments"], {"comments": {"nodes": [{"author": None, "body": "a"},
                                                      {"author": {"login": "b"}, "body": ""}]}},
         [{"author": None, "body": "a"}, {"author": "b", "body": ""}]),
        (_ISSUES["comments"], {"comments": None}, None),
    ],
)  # fmt: skip
def test_values(column: GithubColumn, node: dict[str, Any], value: Any) -> None:
    assert column.value(node) == value
    assert pa.array([column.value(node)], column.type).to_pylist() == [value]


@pytest.mark.parametrize("kind", list(_ALL))
def test_each_column_is_selected_once_by_its_name(kind: str) -> None:
    names = [each.name for each in _ALL[kind]]
    assert len(set(names)) == len(names)
    for each in _ALL[kind]:
        assert f"{each.name}: " in each.selection
        assert each.selection.count("{") == each.selection.count("}")
        assert each.value({}) is None

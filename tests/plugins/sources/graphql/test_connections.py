"""The connection of a query whose pages are read, and the place of its cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources.graphql import connections

INFO = "pageInfo { hasNextPage endCursor }"


@pytest.mark.parametrize(
    ("query", "path", "following"),
    [
        (f"{{a{{{INFO}}}}}", ("a",), f'{{a(after: "c\\"1"){{{INFO}}}}}'),
        (f"{{a(first: 5) {{{INFO}}}}}", ("a",), f'{{a(after: "c\\"1", first: 5) {{{INFO}}}}}'),
        (f'{{a(after: "x", first: 5) {{{INFO}}}}}', ("a",),
         f'{{a(after: "c\\"1", first: 5) {{{INFO}}}}}'),
        (f"{{a(first: 5, after: null) {{{INFO}}}}}", ("a",),
         f'{{a(first: 5, after: "c\\"1") {{{INFO}}}}}'),
        (f"query q($n: [Int!]) @x(y: 1) {{ b: a @z(q: {{after: 1}}) {{{INFO}}} }}", ("b",),
         f'query q($n: [Int!]) @x(y: 1) {{ b: a(after: "c\\"1") @z(q: {{after: 1}}) {{{INFO}}} }}'),
        (f"{{a(by: {{after: 1}}) {{{INFO}}}}}", ("a",),
         f'{{a(after: "c\\"1", by: {{after: 1}}) {{{INFO}}}}}'),
        (f"{{x {{ ... on T @d {{ a {{{INFO}}} }} }} }}", ("x", "a"),
         f'{{x {{ ... on T @d {{ a(after: "c\\"1") {{{INFO}}} }} }} }}'),
        (f"# {{\n{{a{{ b ...F {INFO} }}}} fragment F on T {{ c }}", ("a",),
         f'# {{\n{{a(after: "c\\"1"){{ b ...F {INFO} }}}} fragment F on T {{ c }}'),
        (f'{{a(q: """ {{ " after: 1 """) {{{INFO}}}}}', ("a",),
         f'{{a(after: "c\\"1", q: """ {{ " after: 1 """) {{{INFO}}}}}'),
    ],
)  # fmt: skip
def test_the_cursor_is_written_into_the_query(
    query: str, path: tuple[str, ...], following: str
) -> None:
    found = connections.find(query, None)
    assert found is not None
    assert found.path == path
    assert found.at(query, 'c"1') == (following, {})


@pytest.mark.parametrize("fragment", ["...", "... on T", "... @d", "... on T @d(a: {b: 1}) @e"])
def test_fragments_and_their_directives_are_no_steps_to_the_rows(fragment: str) -> None:
    found = connections.find(f"{{x {{ {fragment} {{ a {{{INFO}}} }} }} }}", None)
    assert found is not None
    assert found.path == ("x", "a")


def test_a_variable_gets_the_cursor() -> None:
    query = f"query($c: String) {{a(after: $c) {{{INFO}}}}}"
    found = connections.find(query, None)
    assert found is not None
    assert found.at(query, "next") == (query, {"c": "next"})


@pytest.mark.parametrize(
    "query",
    ["", "{a}", "{a {b}}", f"{{{INFO}}}", "{a(pageInfo: 1) {b}}", '{a(b: "pageInfo") {c}}',
     "{a {b} # pageInfo\n}", "{", "}", "{a(", "{a:", "{a {pageInfos}}", "{a @", "{...", "{... on"],
)  # fmt: skip
def test_other_queries_have_one_page(query: str) -> None:
    assert connections.find(query, None) is None


TWO = f"{{a {{{INFO} nodes {{ b {{{INFO}}} }} }} c {{{INFO}}} }}"


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("/data/a", ("a",)),
        ("/data/a/nodes", ("a",)),
        ("/data/a/nodes/b/edges", ("a", "nodes", "b")),
        ("/data/c/nodes", ("c",)),
    ],
)
def test_the_nearest_connection_above_the_rows_is_paged(
    pointer: str, path: tuple[str, ...]
) -> None:
    found = connections.find(TWO, pointer)
    assert found is not None
    assert found.path == path
    assert found.pointer("pageInfo") == f"/data/{'/'.join(path)}/pageInfo"


@pytest.mark.parametrize(
    ("query", "pointer", "message"),
    [
        (TWO, None, "has `pageInfo` in several lists; set json_pointer"),
        (TWO, "/data/cc", "has `pageInfo` in another list than that of json_pointer"),
        ("mutation {a}", None, "is a mutation; a dataset only reads"),
        ("subscription s {a}", "/data/a", "is a subscription; a dataset only reads"),
    ],
)
def test_what_cannot_be_paged_is_refused(query: str, pointer: str | None, message: str) -> None:
    with pytest.raises(DatasetError, match=f"params.graphql_query {message}"):
        connections.find(query, pointer)


@given(st.text(st.sampled_from('a{}()[]:@$."\\# \n'), max_size=20))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert connections.find(text, None) is None

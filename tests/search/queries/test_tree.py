"""Trees of text queries: their leaves, and the terms that are counted."""

import pytest

from caraway_search.queries import tree
from caraway_search.queries.tree import (
    Clause,
    CountedTerm,
    Fuzzy,
    Group,
    Leaf,
    Occurrence,
    Phrase,
    Prefix,
    QueryTerm,
)

A, B = QueryTerm("a"), Phrase(("b", "c"))


def group(*nodes: tree.QueryNode) -> Group:
    return Group(tuple(Clause(Occurrence.SHOULD, each) for each in nodes))


@pytest.mark.parametrize(
    ("node", "leaves"),
    [
        (A, [A]),
        (group(), []),
        (group(A, B), [A, B]),
        (group(group(B, group()), A, A), [B, A, A]),
    ],
)
def test_leaves_are_in_the_order_of_the_query(node: tree.QueryNode, leaves: list[Leaf]) -> None:
    assert list(tree.leaves(node)) == leaves


def test_leaves_that_must_not_be_there_are_leaves() -> None:
    assert list(tree.leaves(Group((Clause(Occurrence.MUST_NOT, A),)))) == [A]


@pytest.mark.parametrize(
    ("leaf", "terms"),
    [
        (A, [CountedTerm("a")]),
        (Phrase(("b", "c", "b")), [CountedTerm("b"), CountedTerm("c"), CountedTerm("b")]),
        (Phrase(()), []),
        (Prefix("ru", "run"), [CountedTerm("ru", is_prefix=True, stem="run")]),
        (Fuzzy("a", 1), [CountedTerm("a", 0), CountedTerm("a", 1)]),
        (Fuzzy("a", 2), [CountedTerm("a", 0), CountedTerm("a", 1), CountedTerm("a", 2)]),
    ],
)
def test_counted_terms(leaf: Leaf, terms: list[CountedTerm]) -> None:
    assert list(tree.counted(leaf)) == terms


def test_a_term_and_a_prefix_of_one_text_are_counted_apart() -> None:
    keys = {*tree.counted(QueryTerm("a")), *tree.counted(Prefix("a", "")),
            *tree.counted(Prefix("a", "b")), *tree.counted(Fuzzy("a", 1))}  # fmt: skip
    assert len(keys) == 4

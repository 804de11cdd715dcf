"""Text that users type becomes a query: no text is an error, and no query is large."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.parsing import MOST_LEAVES, parse
from caraway_search.queries.tree import Fuzzy, Group, Phrase, Prefix, QueryTerm, counted, leaves
from caraway_search.text.segment import TextIndexSpec, TextSegment

ANALYZER = Analyzer()


def shown(group: Group) -> str:
    """A query in a short form: `+` must be there, `-` must not."""
    signs = {"must": "+", "must not": "-", "should": ""}
    parts = []
    for clause in group.clauses:
        node = clause.node
        match node:
            case Group():
                text = f"({shown(node)})"
            case QueryTerm():
                text = node.term
            case Phrase():
                text = '"' + " ".join(node.terms) + '"'
            case Prefix():
                text = f"{node.prefix}*"
            case Fuzzy():
                text = f"{node.term}~{node.edits}"
        parts.append(signs[clause.occurrence.value] + text)
    return " ".join(parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running dogs", "run dog"),
        ('"Running dogs" +cats -mice', '"run dog" +cat -mice'),
        ("a AND b", "+a +b"),
        ("k OR b", "k b"),
        ("k NOT b", "k -b"),
        ("k AND NOT b", "k -b"),
        ("NOT", ""),
        ("AND a OR", "+a"),
        ("(k b) AND c", "+(k b) +c"),
        ("+(k -(b c)) e", "+(k -(b c)) e"),
        ("What is THE helm chart?", "helm chart"),
        ("to be or not to be", "to be or not to be"),
        ('cats and dogs "cats and dogs"', 'cat dog "cat and dog"'),
        ("+the who and* -and", "+the and* -and"),
        ("the AND cat", "+the +cat"),
        ("-cat the", "-cat the"),
        ("(the of) cat", "(the of) cat"),
        ("-foo-bar", "-(+foo +bar)"),
        ("+foo-bar", "+foo +bar"),
        ("run* RUNNING* *", "run* running*"),
        (
            "fuzzy~ fuzzy~1 fuzzy~2 fuzzy~0 cat~ fuzzy~7",
            "fuzzi~1 fuzzi~1 fuzzi~2 fuzzi cat~1 fuzzi 7",
        ),
        ('say "hello world', "say hello world"),
        ('foo"bar baz"qux', 'foo "bar baz" qux'),
        ('"one" "" "  "', "one"),
        ('"a b"~3 c', '"a b" c'),
        ("((((((((((deep))))))))))", "((((((((deep))))))))"),
        (") k ( b", "k (b)"),
        ("中文字", "中文 文字"),
        ('"中文字"', '"中文 文字"'),
        ("中", "中*"),
        ('"中 文字"', '"中 文字"'),
        ('"文字 中"', "文字 中*"),
        ('"東京 tower"', '"東京 京 tower"'),
        ('"tower 東京"', '"tower 東京"'),
        ("http://x.y/z?q=1", "http x y z q 1"),
        ("'; DROP TABLE t; --", "drop tabl t"),
        ("- + -- ++ ~ * () ~1", ""),
    ],
)
def test_queries(text: str, expected: str) -> None:
    assert shown(parse(text, ANALYZER)) == expected


@settings(max_examples=400, deadline=None)
@given(st.text() | st.text("ab+-\"()*~1 中ANDORT\u2019'\ud800", max_size=60))
def test_any_text_is_a_query(text: str) -> None:
    query = parse(text, ANALYZER)
    assert all(leaf for leaf in leaves(query))


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        '"' + "word " * 100_000 + '"',
        "(" * 100_000 + "a" + ")" * 100_000,
        '"' * 99_999,
        "a-" * 50_000,
        "中" * 100_000,
        "+" * 100_000,
        "~*" * 50_000,
        "x" * 1_000_000,
        "a" + "\u0315\u0300" * 50_000,
        "\u0651\u064b" * 50_000,
        "\ufdfa" * 100_000,
        "\ufdfa " * 50_000,
    ],
)
def test_a_long_text_is_a_bounded_query(text: str) -> None:
    found = list(leaves(parse(text, ANALYZER)))
    assert sum(len(counted(leaf)) for leaf in found) <= MOST_LEAVES


def test_stop_words_are_those_of_the_language() -> None:
    text = "der Hund à la plage"

    assert shown(parse(text, Analyzer("german"))) == "hund a la plag"
    assert shown(parse(text, Analyzer("french"))) == "der hund plag"
    assert shown(parse(text, Analyzer("none"))) == "der hund a la plage"


SCRIPTS = st.text(
    "abZ'\u2019 -éßİ\u0131ﬁ½中文字アー한ไทקאكйЁΏक\u094d\u0301\u0651\u200d😀3",
    min_size=1,
    max_size=20,
)


@settings(max_examples=30)
@given(
    st.sampled_from(["none", "english", "french", "arabic"]),
    st.lists(SCRIPTS, min_size=1, max_size=5),
)
def test_a_text_is_found_by_its_words_and_as_a_phrase(language: str, texts: list[str]) -> None:
    """In any script: as a word, in capital letters, as necessary and in quotes."""
    spec = TextIndexSpec({"a": 1.0}, language)
    segment = TextSegment.build(spec, {"a": pa.array(texts)})
    for row, text in enumerate(texts):
        words = [word for word in spec.analyzer.words(text) if spec.analyzer.pieces(word)]
        queries = [q for w in words for q in (w, w.upper(), f"+{w}", f'"{w}"')]
        for query in [*queries, f'"{text}"']:
            parsed = parse(query, spec.analyzer)
            if words:
                assert segment.scores(parsed, segment.statistics(parsed)).found[row], query

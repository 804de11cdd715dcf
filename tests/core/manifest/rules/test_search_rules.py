"""Contradictions between the keys of search, and keys of it that change nothing."""

from pathlib import Path

import pytest

from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import search_rules
from caraway_core.manifest.values.search_columns import BUILTIN


def parsed(text: str) -> Document:
    return document.parse("from: file:a.csv\n" + text, Path("d.yaml"))


def problems(text: str) -> list[str]:
    return [f"{each.path}: {each.message}" for each in search_rules.dataset(parsed(text))]


@pytest.mark.parametrize(
    "text",
    [
        "columns: [{name: a, type: string, embeddings: [{from: m}]}]",
        "columns: [{name: a, type: large_string, full_text_search: {}}]",
        "columns: [{name: a, type: bigint, full_text_search: {enabled: false}}]",
        "columns: [{name: a, embeddings: [{chunking: {target_chunk_size: 8, overlap_size: 7}}]}]",
        "columns: [{name: a, embeddings: [{chunking: {target_chunk_size: 8, overlap_size: 0}}]}]",
        "columns: [{name: a, embeddings: [1]}, {name: a_embedding}, x, 7, [], null]",
        "columns: [{name: a_embedding, embeddings: [{}]}]",
        "columns: {name: a}",
        "columns: 7",
        "vectors: [x]",
        "vectors: {engine: 7, params: 8}",
        "vectors: {params: {metric: l2, recall: 0.5}}",
        "vectors: {engine: duckdb, params: {anything: 1}}",
        "full_text_search: {engine: tantivy}",
    ],
)
def test_what_does_not_contradict_is_left_to_the_shape(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "columns: [{name: a, embeddings: [{}, {}, {}]}]",
            "columns[0].embeddings[1]: a column has one embedding",
        ),
        (
            "columns: [{name: n, type: bigint, embeddings: [{}]}]",
            "columns[0].type: only text can be searched, and column 'n' is none",
        ),
        (
            "columns: [x, {name: n, type: 'list<string>', full_text_search: {}}]",
            "columns[1].type: only text can be searched",
        ),
        (
            "columns: [{name: a, embeddings: [{chunking: {target_chunk_size: 8, "
            "overlap_size: 8}}]}]",
            "chunking.overlap_size: must be less than 'target_chunk_size', which is 8",
        ),
        (
            "columns: [{name: a, embeddings: [{chunking: {overlap_size: 1000000000}}]}]",
            "must be less than 'target_chunk_size'",
        ),
        (
            "columns: [{name: a, embeddings: [{}]}, {name: a_embedding, embeddings: [{}]}]",
            "columns[1].embeddings: column 'a_embedding' is generated; it cannot be embedded",
        ),
        (
            "columns: [{name: a_offset, embeddings: [{}]}, {name: a, embeddings: [{}]}]",
            "columns[0].embeddings: column 'a_offset' is generated",
        ),
        (
            "vectors: {engine: elasticsearch}",
            "vectors.engine: the engine 'elasticsearch' is refused: vectors",
        ),
        ("vectors: {engine: duckbd}", "did you mean 'duckdb'"),
        ("full_text_search: {engine: duckdb}", "full_text_search.engine: "),
        ("vectors: {params: {metrc: l2}}", "vectors.params.metrc: "),
        ("vectors: {params: {recall: 2}}", "vectors.params.recall: "),
        ("vectors: {params: {metric: far}}", "vectors.params.metric: "),
        ("full_text_search: {params: {language: klingon}}", "full_text_search.params.language: "),
    ],
)
def test_contradictions_are_found_where_they_are(text: str, words: str) -> None:
    (problem,) = problems(text)
    assert words in problem


def test_view_has_the_types_of_its_query() -> None:
    of_view = list(search_rules.view(parsed("columns: [{name: a}, {name: b, type: string}]")))
    assert [each.path for each in of_view] == ["columns[1].type"]
    assert problems("columns: [{name: b, type: string}]") == []


@pytest.mark.parametrize(
    "text",
    ["name: 'built:in'\nfrom: openai:x", "name: builtin\nfrom: openai:x", "name: 7\nfrom: 8"],
)
def test_embedding_models_may_have_other_names(text: str) -> None:
    assert list(search_rules.embedding(document.parse(text, Path("e.yaml")))) == []


def test_names_of_built_in_models_are_theirs() -> None:
    name = f"{BUILTIN}:small"
    for spelled in (name, f"{BUILTIN}: small"):
        own = document.parse(f"name: '{name}'\nfrom: '{spelled}'", Path("e.yaml"))
        assert list(search_rules.embedding(own)) == []
    other = document.parse(f"name: '{name}'\nfrom: openai:x", Path("e.yaml"))
    (problem,) = search_rules.embedding(other)
    assert problem.path == "name" and "built-in models" in problem.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vectors: {engine: duckdb}\ncolumns: [{name: a, embeddings: [{}]}]", ["means the engine"]),
        (
            "vectors: {engine: duckdb, params: {a: 1}}\ncolumns: [{name: a, embeddings: [{}]}]",
            ["means the engine", "have no effect: they are those of 'duckdb'"],
        ),
        ("vectors: {}", ["no column has 'embeddings'"]),
        ("vectors: {enabled: false}", []),
        ("full_text_search: {}\ncolumns: [{name: a}, 7]", ["no column has 'full_text_search'"]),
        (
            "full_text_search: {}\ncolumns: [{name: a, full_text_search: {enabled: false}}]",
            ["no column has 'full_text_search'"],
        ),
        ("full_text_search: {}\ncolumns: [{name: a, full_text_search: {}}]", []),
        ("vectors: 7\nfull_text_search: []", []),
    ],
)
def test_search_that_changes_nothing_is_noticed(text: str, words: list[str]) -> None:
    found = list(search_rules.notices(parsed(text)))
    assert len(found) == len(words)
    assert all(each in line for each, line in zip(words, found, strict=True))

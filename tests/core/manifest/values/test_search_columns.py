"""Embedding models, searched columns and the settings of search in manifests."""

from pathlib import Path

import pytest
import Stemmer

from caraway_core.manifest import Chunking, EmbeddedColumn, KeywordColumn, SearchColumns, load
from caraway_core.manifest.values.search_columns import LANGUAGES, KeywordSettings, VectorSettings
from tests.core.manifest.conftest import Loads, Refuses, Write

MODEL = "embeddings:\n  - {from: 'openai:x', name: mine}\n"


def dataset(*keys: str) -> str:
    lines = ["  - from: file:a.csv", "    name: a", *(f"    {key}" for key in keys)]
    return "\n".join(("datasets:", *lines, ""))


def column(text: str) -> str:
    return dataset(f"columns: [{{name: body, {text}}}]")


def test_a_column_is_searched_by_its_settings(loads: Loads) -> None:
    manifest = loads(
        MODEL
        + """
datasets:
  - from: file:a.csv
    name: a
    vectors: {params: {metric: dot, recall: 1}}
    full_text_search: {engine: caraway, params: {language: german}}
    columns:
      - name: title
        full_text_search: {}
      - name: body
        type: text
        embeddings:
          - from: mine
            row_id: [id, part]
            chunking: {enabled: true, target_chunk_size: 100, overlap_size: 9, trim_whitespace: no}
        full_text_search: {enabled: true, row_id: id}
""".replace("trim_whitespace: no", "trim_whitespace: false")
    )
    (found,) = manifest.datasets
    assert found.search == SearchColumns(
        (EmbeddedColumn("body", "mine", ("id", "part"), Chunking(100, 9, False)),),
        (KeywordColumn("title"), KeywordColumn("body", ("id",))),
        VectorSettings(metric="dot", recall=1.0),
        KeywordSettings("german"),
    )
    (embedded,) = found.search.embedded
    assert (embedded.vector_column, embedded.offset_column) == ("body_embedding", "body_offset")
    assert manifest.notices == ()


def test_search_is_off_where_nothing_asks_for_it(loads: Loads) -> None:
    off = "full_text_search: {enabled: false}"
    texts = (
        dataset(),
        column("embeddings: []"),
        column(off),
        dataset(off, "columns: [{name: b, full_text_search: {}}]"),
    )
    for text in texts:
        assert not loads(text).datasets[0].search


def test_defaults_of_a_searched_column(loads: Loads) -> None:
    chunked = "embeddings: [{from: 'builtin:minilm', chunking: {enabled: true}}]"
    (found,) = loads(column(chunked)).datasets
    assert found.search.embedded[0].chunking == Chunking(512, 0, True)
    plain = "embeddings: [{from: 'builtin:wordllama', chunking: {target_chunk_size: 9}}]"
    (found,) = loads(column(plain)).datasets
    assert found.search.embedded[0].chunking is None
    assert found.search.vectors == VectorSettings(True, "cosine", 0.98)
    assert found.search.keyword_settings == KeywordSettings("english")


def test_views_are_searched_as_datasets_are(loads: Loads) -> None:
    columns = "columns: [{name: body, description: d, embeddings: [{from: 'builtin:minilm'}]}]"
    manifest = loads(
        f"views:\n  - {{name: v, sql: SELECT 1, {columns}}}\n"
        f"  - {{name: w, sql: SELECT 1, {columns}, acceleration: {{}}, vectors: {{enabled: false}}"
        "}"
    )
    (view,), (kept,) = manifest.views, manifest.datasets
    assert (
        view.search.embedded == kept.search.embedded == (EmbeddedColumn("body", "builtin:minilm"),)
    )
    assert view.columns[0].description == kept.columns[0].description == "d"
    assert view.search.vectors.is_indexed and not kept.search.vectors.is_indexed


def test_embedding_models_are_kept_as_written(write: Write, tmp_path: Path) -> None:
    write("name: inner\nembeddings: [{from: openai, name: shared}]", "inner/caraway.yaml")
    path = write(
        """
name: app
dependencies: [inner]
embeddings:
  - from: FILE:models/small
    name: own
    description: Ours
    metadata: {day: 2024-01-01}
    params: {max_tokens: 128, key: "${secrets:k}"}
    files: [{path: a/model.onnx}, {path: a/tokenizer.json, name: t, type: tokenizer}]
    dependsOn: a
  - {from: "builtin:minilm", name: "builtin:minilm"}
"""
    )
    embedders = {each.name: each for each in load(path).embedders}
    assert list(embedders) == ["shared", "own", "builtin:minilm", "builtin:wordllama"]
    own = embedders["own"]
    assert (own.provider, own.model, own.base_dir) == ("file", "models/small", tmp_path)
    assert own.params == {"max_tokens": "128", "key": "${secrets:k}"}
    assert (own.description, own.metadata) == ("Ours", {"day": "2024-01-01"})
    assert own.files == ("a/model.onnx", "a/tokenizer.json")
    assert (embedders["shared"].provider, embedders["shared"].model) == ("openai", "")
    assert embedders["builtin:minilm"].is_declared
    assert not embedders["builtin:wordllama"].is_declared
    assert "secrets" not in repr(own)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("{name: m}", "the key 'from' is missing"),
        ("{from: openai}", "the key 'name' is missing"),
        ("{from: 7, name: m}", "from: must be a text"),
        ("{from: 'opnai:x', name: m}", "no embedding provider 'opnai'; did you mean 'openai'?"),
        ("{from: ':x', name: m}", "from: ':x' names no provider; write '<provider>:<model>'"),
        ("{from: 'builtin:bert', name: m}", "no built-in embedding model 'builtin:bert'; known:"),
        ("{from: openai, name: 'builtin:minilm'}", "are those of built-in models"),
        ('{from: openai, name: "a\'b"}', "name: 'a'b' is not a model name"),
        ("{from: openai, name: mine}", "the name 'mine' is taken: caraway.yaml:3 declares it"),
        ("{from: openai, name: m, file: a}", "unknown key 'file'; did you mean 'files'?"),
        ("{from: openai, name: m, files: [{name: a}]}", "files[0].path: the key 'path' is missing"),
        ("{from: openai, name: m, params: {a: [1]}}", "the value of 'a'"),
    ],
)
def test_wrong_embedding_models_are_refused(refuses: Refuses, item: str, said: str) -> None:
    (problem,) = refuses(f"name: a\n{MODEL}  - {item}\n")
    assert problem.startswith("caraway.yaml:4: embeddings[1]")
    assert said in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("embeddings: [{row_id: a}]", "embeddings[0].from: the key 'from' is missing"),
        ("embeddings: {from: mine}", "embeddings: must be a list"),
        ("embeddings: [mine]", "embeddings[0]: must be a mapping of keys to values"),
        ("embeddings: [{from: min}]", "from: no embedding model 'min'; did you mean 'mine'? Known"),
        ("embeddings: [{from: mine, rowid: a}]", "unknown key 'rowid'; did you mean 'row_id'?"),
        ("embeddings: [{from: mine}, {from: mine}]", "[1]: a column has one embedding"),
        ("type: int, embeddings: [{from: mine}]", "only text can be searched, and column 'body'"),
        (
            "type: blob, full_text_search: {}",
            "only text can be searched, and column 'body' is none",
        ),
        ("full_text_search: true", "full_text_search: must be a mapping of keys to values"),
        ("full_text_search: {enabled: 1}", "full_text_search.enabled: must be true or false"),
        ("embeddings: [{from: mine, chunking: {enabled: 1}}]", "enabled: must be true or false"),
        (
            "embeddings: [{from: mine, chunking: {target_chunk_size: 0}}]",
            "chunking.target_chunk_size: must be at least 1",
        ),
        (
            "embeddings: [{from: mine, chunking: {overlap_size: 512}}]",
            "chunking.overlap_size: must be less than 'target_chunk_size', which is 512",
        ),
    ],
)
def test_wrong_columns_are_refused(refuses: Refuses, text: str, said: str) -> None:
    (problem,) = refuses("name: a\n" + MODEL + column(text))
    assert problem.startswith("caraway.yaml:7: datasets[0].columns[0]")
    assert said in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vectors: {engine: lance}", "vectors.engine: no engine 'lance'; known: caraway, duckdb"),
        ("vectors: {engine: elasticsearch}", "the engine 'elasticsearch' is refused: vectors are"),
        ("vectors: {params: {metrik: dot}}", "no vectors param 'metrik'; did you mean 'metric'?"),
        ("vectors: {params: {metric: cos}}", "params.metric: 'cos' is not one of: cosine, dot, l2"),
        ("vectors: {params: {recall: 98}}", "params.recall: '98' is no number from 0.5 to 1"),
        ("vectors: {params: {recall: nan}}", "params.recall: 'nan' is no number from 0.5 to 1"),
        ("full_text_search: {engine: bm25}", "full_text_search.engine: no engine 'bm25'"),
        ("full_text_search: {params: {language: klingon}}", "'klingon' is not one of: arabic"),
        ("full_text_search: {enable: true}", "unknown key 'enable'; did you mean 'enabled'?"),
    ],
)
def test_wrong_settings_are_refused(refuses: Refuses, text: str, said: str) -> None:
    problems = refuses("name: a\n" + dataset(text))
    assert [problem for problem in problems if said in problem]
    assert problems[0].startswith("caraway.yaml:5: datasets[0].")


def test_views_have_no_column_types(refuses: Refuses) -> None:
    (problem,) = refuses(
        "name: a\nviews: [{name: v, sql: SELECT 1, columns: [{name: a, type: int}]}]"
    )
    assert "views[0].columns[0].type: a view has the types of its query" in problem


def test_notices_say_what_has_no_effect(loads: Loads) -> None:
    manifest = loads(
        dataset("vectors: {engine: duckdb, params: {a: b}}", "full_text_search: {engine: tantivy}")
    )
    said = [notice.partition("datasets[0].")[2] for notice in manifest.notices]
    assert said == [
        "vectors.engine: 'duckdb' means the engine 'caraway' here",
        "vectors.params: have no effect: they are those of 'duckdb'",
        "full_text_search.engine: 'tantivy' means the engine 'caraway' here",
        "vectors: has no effect: no column has 'embeddings'",
        "full_text_search: has no effect: no column has 'full_text_search'",
    ]


def test_unknown_params_of_a_model_are_refused_by_validate(write: Write) -> None:
    path = write("name: a\nembeddings: [{from: openai, name: m, params: {openai_apikey: x}}]")
    assert load(path).embedders[0].params == {"openai_apikey": "x"}
    with pytest.raises(Exception, match="no openai param 'openai_apikey'; did you mean 'openai_a"):
        load(path, checks_params=True)


def test_every_language_has_a_stemmer() -> None:
    # Two of its algorithms are older forms of others.
    assert LANGUAGES == {*Stemmer.algorithms(), "none"} - {"porter", "dutch_porter"}

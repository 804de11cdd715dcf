"""`caraway validate` on views that search."""

from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_gateway.composition import command

MANIFEST = """version: v1
kind: Caraway
name: test
datasets:
  - from: file:docs.csv
    name: docs
    columns:
      - {name: body, embeddings: [{from: 'builtin:wordllama'}], full_text_search: {enabled: true}}
  - {from: 'file:docs.csv', name: plain}
views:
  - {name: base, sql: 'SELECT * FROM docs'}
"""
ROWS = "id,body,day\n1,first,2026-01-01\n2,second,2026-01-02\n"


def _view(folder: Path, sql: str) -> Path:
    path = folder / "caraway.yaml"
    path.write_text(f'{MANIFEST}  - {{name: hits, sql: "{sql}"}}\n')
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM vector_search(docs, 'x')",
        "SELECT * FROM text_search(public.docs, 'x', body, 10)",
        "SELECT * FROM rrf(vector_search(docs, 'x'), text_search(docs, 'x'))",
        "SELECT * FROM text_search(base, 'x') WHERE id = 1",
        "SELECT * FROM rerank(input => TABLE(SELECT * FROM plain), query => 'x')",
        "SELECT rrf FROM plain",
    ],
)
def test_views_that_search(tmp_path: Path, sql: str) -> None:
    assert command.validate(_view(tmp_path, sql)) == 0


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM text_search(plain, 'x')", "'plain' has no column with `full_text_search`"),
        ("SELECT * FROM vector_search(plain, 'x')", "'plain' has no column with `embeddings`"),
        ("SELECT * FROM text_search(dosc, 'x')", "did you mean 'docs'?"),
        ("SELECT * FROM text_search(docs, 'x', body + 1)", "line 1, column"),
        ("SELECT * FROM rrf(vector_search(plain, 'x'), text_search(plain, 'x'))", "`embeddings`"),
        ("SELECT text_search(docs, 'x')", "write it in FROM or JOIN"),
    ],
)
def test_searches_that_are_wrong(tmp_path: Path, sql: str, message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        command.validate(_view(tmp_path, sql))
    assert message in str(refused.value) and "view 'hits'" in str(refused.value)


def test_views_over_local_files_are_planned(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text(ROWS)
    wrong = {
        "SELECT boddy FROM vector_search(docs, 'x')": "did you mean 'vector_search.body'?",
        "SELECT id FROM text_search(docs, 'x') WHERE body + 1 > day": "cannot be computed",
        "SELECT * FROM text_search(docs, 'x', bodi)": "no column 'bodi'; did you mean 'body'?",
        "SELECT fused FROM rrf(text_search(docs, 'a'), text_search(docs, 'b'))": "fused_score",
        "SELECT h.id FROM text_search(base, 'x') h JOIN nope ON true": "table 'nope' not found",
        "SELECT body_offset FROM vector_search(docs, 'x')": "'body_offset' not found",
    }
    right = "SELECT id, array_length(body_embedding) AS n FROM vector_search(docs, 'x')"
    path = _view(tmp_path, right)
    views = "".join(f'  - {{name: w{n}, sql: "{sql}"}}\n' for n, sql in enumerate(wrong))
    # Then vectors are generated columns.
    name = "    name: docs\n"
    text = path.read_text().replace(name, f"{name}    acceleration: {{enabled: true}}\n")
    path.write_text(f"{text}{views}  - {{name: above, sql: 'SELECT * FROM w0'}}\n")
    with pytest.raises(ManifestError) as refused:
        command.validate(path)
    assert [each.path for each in refused.value.problems] == [
        f"view 'w{n}'" for n in range(len(wrong))
    ]
    for problem, message in zip(refused.value.problems, wrong.values(), strict=True):
        assert message in problem.message and "search$" not in problem.message


def test_views_over_other_sources_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _view(tmp_path, "SELECT boddy FROM text_search(docs, 'x')")
    path.write_text(path.read_text().replace("file:docs.csv", "s3://bucket/docs.csv"))
    assert command.validate(path) == 0
    note = "note: view 'hits' is not planned: the columns of 'docs' are those of its source, 's3'"
    assert note in capsys.readouterr().err


FUNCTIONS = """version: v1
kind: Caraway
name: test
datasets:
  - {from: 'file:docs.csv', name: docs, columns: [{name: body, full_text_search: {enabled: true}}]}
  - {from: 'postgres:away', name: away}
functions:
  - name: good
    signature: {args: [{name: a, type: double}, {name: b, type: date}], returns: double}
    body: a + date_part('year', b)
  - {name: none, signature: {returns: int}, body: 1 + 1}
  - {name: found, kind: table, signature: {args: [{name: q, type: text}]},
     body: "SELECT id, good(score, '2024-01-01') AS s FROM text_search(docs, $q, limit => 3)"}
  - {name: unknown, signature: {args: [{name: a, type: int}], returns: int}, body: goood(a)}
  - {name: mistyped, signature: {args: [{name: a, type: 'int[]'}], returns: int}, body: a + 1}
  - {name: lacking, kind: table, body: SELECT id AS i FROM docs,
     signature: {returns: [{name: id, type: int}]}}
  - {name: nowhere, kind: table, body: SELECT * FROM nope}
  - {name: remote, kind: table, body: SELECT * FROM away}
"""


def test_functions_are_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs.csv").write_text(ROWS)
    path = tmp_path / "caraway.yaml"
    path.write_text(FUNCTIONS)
    with pytest.raises(ManifestError) as refused:
        command.validate(path)
    said = {each.path: each.message for each in refused.value.problems}
    begin = {
        "function 'unknown'": "function 'goood' not found; did you mean '",
        "function 'mistyped'": "List(INT) + BIGINT cannot be computed; cast ",
        "function 'lacking'": "column 'id' not found; did you mean 'lacking",
        "function 'nowhere'": "table 'nope' not found; Known tables: docs.",
    }
    # Which name of its own the engine proposes differs from run to run.
    assert {path: message[: len(begin[path])] for path, message in said.items()} == begin
    assert capsys.readouterr().out == ""
    lines = FUNCTIONS.splitlines()
    wrong = ("unknown", "mistyped", "lacking", "nowhere", "     signature: {returns: [")
    kept = [line for line in lines if not any(each in line for each in wrong)]
    path.write_text("\n".join(kept))
    assert command.validate(path) == 0
    told = "note: function 'remote' is not planned: the columns of 'away' are those of its source"
    assert told in capsys.readouterr().err


def test_what_reads_tables_of_catalogs_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "caraway.yaml"
    head = FUNCTIONS[: FUNCTIONS.index("datasets:")]
    path.write_text(
        f"{head}catalogs:\n  - {{from: duckdb, name: shop, params: {{duckdb_open: none}}}}\n"
        "views:\n  - {name: v, sql: SELECT * FROM shop.main.t}\n"
        "functions:\n  - {name: found, kind: table, body: SELECT * FROM v}\n"
    )
    assert command.validate(path) == 0
    told = "note: function 'found' is not planned: the columns of 'shop.main.t' are those of its"
    assert told in capsys.readouterr().err

"""`caraway validate` on views that search."""

from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_scheduler.composition import command

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

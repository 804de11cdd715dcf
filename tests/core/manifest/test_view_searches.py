"""Searches in the views of a manifest: their tables exist and have columns that are searched so."""

import pytest

from caraway_core.manifest import view_searches
from tests.core.manifest.conftest import Loads

MANIFEST = """
embeddings:
  - {from: 'openai:x', name: mine}
datasets:
  - from: file:a.csv
    name: articles
    columns:
      - name: title
        full_text_search: {}
      - name: body
        embeddings:
          - from: mine
            row_id: [id]
  - from: file:b.csv
    name: plain
views:
  - name: found
    sql: SELECT * FROM articles
"""


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM text_search(articles, 'cat', title)", None),
        ("SELECT * FROM vector_search(articles, 'cat')", None),
        ("SELECT * FROM text_search(found, 'cat')", None),
        ("SELECT * FROM vector_search(other.articles_of_a_catalog, 'cat')", None),
        ("SELECT * FROM articles", None),
        ("SELECT * FROM text_search(plain, 'cat')", "has no column with `full_text_search`"),
        ("SELECT * FROM vector_search(plain, 'cat')", "has no column with `embeddings`"),
        ("SELECT * FROM text_search(article, 'cat')", "articles"),
        (
            "SELECT * FROM rrf(text_search(articles, 'a'), vector_search(plain, 'a'))",
            "has no column with `embeddings`",
        ),
    ],
)
def test_searches_of_views(loads: Loads, sql: str, words: str | None) -> None:
    manifest = loads(f"{MANIFEST}  - name: searching\n    sql: {sql}\n")
    problems = [str(problem) for problem in view_searches.problems(manifest)]
    assert len(problems) == (words is not None)
    assert all("view 'searching'" in each and str(words) in each for each in problems)

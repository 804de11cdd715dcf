"""How good searches are: by words, by meaning and by both, against references in numpy and bm25s.

The documents are docstrings of Python's standard library without their first paragraphs, which are
the queries: each is the answer to its own. The words of a query and its document overlap in part.
"""

import ast
import random
import re
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path

import bm25s
import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench import servers
from bench.report import Figure, Section
from bench.settings import Settings
from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.parsing import parse
from caraway_search.queries.tree import QueryTerm

_QUERIES = 500
_DEPTH = 100
_READY_S = 300
_SLACK = 1e-3
"""Rows of equal scores may be in another order."""
_WORD = re.compile(r"\w+")
"""Queries are words alone, because `bm25s` knows no operators."""
_LEFT_OUT = {"test", "tests", "site-packages", "lib2to3", "idlelib", "turtledemo"}
_MANIFEST = """\
version: v1
kind: Caraway
name: relevance
runtime: {caching: {search_results: {enabled: false}}}
datasets:
  - from: file:docs.parquet
    name: docs
    acceleration: {enabled: true, primary_key: id}
    columns:
      - name: body
        embeddings: [{from: 'builtin:minilm'}]
        full_text_search: {enabled: true}
"""

Ranks = Sequence[int | None]
"""The place of the answer to each query, from 1; None if it is not among the first hundred."""


@dataclass(frozen=True, slots=True)
class RelevanceSet:
    """Documents, and queries with the numbers of the documents that answer them."""

    documents: Sequence[str]
    queries: Mapping[str, int]


def measure(settings: Settings) -> Section:
    """Answer the same queries in each way, and compare how far up the answers are."""
    known = docstrings()
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(_MANIFEST)
        rows = {"id": list(range(len(known.documents))), "body": list(known.documents)}
        pq.write_table(pa.table(rows), Path(folder) / "docs.parquet")
        with servers.caraway(manifest) as (url, _), httpx.Client(base_url=url, timeout=60) as api:
            _wait_until_ready(api)
            words = _ranks(known, lambda text: _by_sql(api, "text_search", text))
            meaning = _ranks(known, lambda text: _by_sql(api, "vector_search", text))
            both = _ranks(known, lambda text: _by_both(api, text))
            exact = _ranks(known, _exact(api, known))
    plain = _ranks(known, _bm25s(known))
    best = max(words, meaning, key=ndcg)
    figures = [
        *_figures("text search; `bm25s` with the same tokens", words, plain),
        *_figures("vector search; exact cosines of the same model", meaning, exact),
        *_figures("hybrid search; the better of text and vector search", both, best),
    ]
    text = (
        f"{len(known.documents):,} documents, {len(known.queries)} queries, `builtin:minilm`. A "
        f"document has {_shared(known):.0%} of the words of its query, on average."
    )
    return Section("search-relevance", figures, text)


def docstrings() -> RelevanceSet:
    """Return the docstrings of the standard library of this Python."""
    found: dict[str, str] = {}
    for docstring in _all_docstrings():
        first, _, rest = docstring.partition("\n\n")
        query, document = " ".join(_WORD.findall(first)), " ".join(rest.split())
        if 4 <= len(query.split()) <= 20 and 20 <= len(document.split()) <= 200:
            found.setdefault(query, document)
    documents = list(dict.fromkeys(found.values()))
    numbers = {document: number for number, document in enumerate(documents)}
    chosen = random.Random(3).sample(sorted(found), _QUERIES)
    return RelevanceSet(documents, {query: numbers[found[query]] for query in chosen})


def ndcg(ranks: Ranks) -> float:
    """nDCG@10, where each query has one answer."""
    gains = [1 / log2(rank + 1) for rank in ranks if rank is not None and rank <= 10]
    return sum(gains) / len(ranks)


def mrr(ranks: Ranks) -> float:
    """The mean reciprocal rank."""
    return sum(1 / rank for rank in ranks if rank is not None) / len(ranks)


def _all_docstrings() -> Iterator[str]:
    root = Path(sysconfig.get_paths()["stdlib"])
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted(root.rglob("*.py")):
        if _LEFT_OUT.isdisjoint(path.relative_to(root).parts):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, kinds) and (docstring := ast.get_docstring(node)):
                    yield docstring


def _figures(name: str, ours: Ranks, theirs: Ranks) -> Iterator[Figure]:
    for measure_name, value in (("nDCG@10", ndcg), ("MRR", mrr)):
        a, b = value(ours), value(theirs)
        yield Figure(f"{measure_name} of {name}", f"{a:.3f}", f"{b:.3f}", a / b, "≥ 1",
                     a >= b - _SLACK)  # fmt: skip


def _ranks(known: RelevanceSet, find: Callable[[str], Sequence[int]]) -> Ranks:
    ranks: list[int | None] = []
    for query, answer in known.queries.items():
        found = list(find(query))
        ranks.append(found.index(answer) + 1 if answer in found else None)
    return ranks


def _wait_until_ready(api: httpx.Client) -> None:
    """Wait until the documents are embedded."""
    deadline = time.monotonic() + _READY_S
    while (answer := api.get("/v1/ready")).status_code != 200:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the documents were not embedded in time: {answer.text}")
        time.sleep(0.5)


def _by_sql(api: httpx.Client, function: str, text: str) -> list[int]:
    sql = f"SELECT id FROM {function}(docs, $1) ORDER BY score DESC, id LIMIT {_DEPTH}"
    answer = api.post("/v1/sql", json={"sql": sql, "parameters": [text]})
    answer.raise_for_status()
    return [row["id"] for row in answer.json()]


def _by_both(api: httpx.Client, text: str) -> list[int]:
    body = {"text": text, "datasets": ["docs"], "limit": _DEPTH}
    answer = api.post("/v1/search", json=body)
    answer.raise_for_status()
    return [row["primary_key"]["id"] for row in answer.json()["results"]]


def _exact(api: httpx.Client, known: RelevanceSet) -> Callable[[str], Sequence[int]]:
    vectors = np.concatenate(
        [
            _embedded(api, known.documents[first : first + 64])
            for first in range(0, len(known.documents), 64)
        ]
    )

    def find(text: str) -> Sequence[int]:
        scores = vectors @ _embedded(api, [text])[0]
        return [int(each) for each in np.argsort(-scores, kind="stable")[:_DEPTH]]

    return find


def _embedded(api: httpx.Client, texts: Sequence[str]) -> NDArray[np.float64]:
    answer = api.post("/v1/embeddings", json={"model": "builtin:minilm", "input": list(texts)})
    answer.raise_for_status()
    vectors = np.array([each["embedding"] for each in answer.json()["data"]])
    unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _shared(known: RelevanceSet) -> float:
    """Return the average part of the terms of a query that its document has."""
    analyzer = Analyzer("english")
    shares = []
    for query, number in known.queries.items():
        terms = set(_asked(analyzer, query))
        if terms:
            shares.append(len(terms & {*_terms(analyzer, known.documents[number])}) / len(terms))
    return sum(shares) / len(shares)


def _bm25s(known: RelevanceSet) -> Callable[[str], Sequence[int]]:
    analyzer = Analyzer("english")
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    tokens = [_terms(analyzer, each) for each in known.documents]
    index.index(tokens, show_progress=False)

    def find(text: str) -> Sequence[int]:
        found, scores = index.retrieve([_asked(analyzer, text)], k=_DEPTH, show_progress=False)
        return [int(n) for n, score in zip(found[0], scores[0], strict=True) if score > 0]

    return find


def _asked(analyzer: Analyzer, text: str) -> list[str]:
    """Return the terms of a query, without stop words."""
    leaves = [clause.node for clause in parse(text, analyzer).clauses]
    return [leaf.term for leaf in leaves if isinstance(leaf, QueryTerm)]


def _terms(analyzer: Analyzer, text: str) -> list[str]:
    return [
        term
        for word in analyzer.words(text)
        for piece in analyzer.pieces(word)
        for term in analyzer.terms(piece)
    ]

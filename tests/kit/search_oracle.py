"""Searches by the plainest means: a textbook's BM25, and cosines one row at a time."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_search.analysis.analyzer import Analyzer
from caraway_search.queries.parsing import parse
from tests.kit.plain_bm25 import Oracle

MODEL = "wordllama"
K, LEAST_RANKED = 60, 100
WORDS = ("bread butter salt water cluster executor key piano rotate scale market share price "
         "garden kitten wool ball sofa éclair 東京 don't").split()  # fmt: skip
QUERIES = ("rot*", "+key", "kiten~", '"key water"', "bread -salt", "butter AND (key OR salt)")
Scores = Mapping[int, float]
Found = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """A document."""

    kind: str
    title: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate in SQL, and the same in Python."""

    sql: str | None
    passes: Callable[["Shelf", int, Row], bool]


FILTERS = (
    Filter(None, lambda _shelf, _id, _row: True),
    Filter("kind = 'b'", lambda _shelf, _id, row: row.kind == "b"),
    Filter("WHERE id % 3 = 1 OR title IS NULL", lambda _s, id, row: id % 3 == 1 or not row.title),
    Filter("length(body) > 30", lambda _shelf, _id, row: len(row.body or "") > 30),
    Filter(
        "id IN (SELECT id + 1 FROM docs WHERE kind = 'a')",
        lambda shelf, id, _row: id - 1 in shelf.rows and shelf.rows[id - 1].kind == "a",
    ),
    Filter("docs.id = 7", lambda _shelf, id, _row: id == 7),
    Filter("false", lambda _shelf, _id, _row: False),
)


@dataclass
class Shelf:
    """Documents by id, made and changed by a seed; each change is returned as SQL, too."""

    seed: int
    rows: dict[int, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._model: Embedder = EmbedderSpec(MODEL, "builtin", MODEL).build()

    def text(self, most: int) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, most)))

    def insert(self, count: int) -> str:
        """Add documents."""
        first = max(self.rows, default=-1) + 1
        new = {first + n: self._row() for n in range(count)}
        self.rows |= new
        return (
            f"INSERT INTO docs (id, kind, title, body) VALUES {', '.join(map(_sql, new.items()))}"
        )

    def change(self) -> str:
        """Update or delete some documents."""
        ids = self.random.sample(sorted(self.rows), self.random.randint(1, 5))
        where = f"WHERE id IN ({', '.join(map(str, ids))})"
        if self.random.random() < 0.4:
            for each in ids:
                del self.rows[each]
            return f"DELETE FROM docs {where}"
        made = self._row()
        for each in ids:
            self.rows[each] = made
        values = f"kind = {_text(made.kind)}, title = {_text(made.title)}"
        return f"UPDATE docs SET {values}, body = {_text(made.body)} {where}"

    def request(self) -> tuple[dict[str, Any], Filter]:
        """A search over HTTP."""
        chosen = self.random.choice(FILTERS)
        asked: dict[str, Any] = {"text": self._query(3), "datasets": ["docs"]}
        asked |= {"limit": self.random.choice((1, 5, 200)), "where": chosen.sql}
        if self.random.random() < 0.4:
            asked["keywords"] = [self._query(2).replace('"', "")]
        return asked, chosen

    def expected(self, asked: Mapping[str, Any], chosen: Filter) -> Found:
        """The expected rows of the search, fused by their ranks in both lists."""
        words = asked["text"]
        if keywords := asked.get("keywords"):
            words = " ".join(f'"{each}"' if " " in each else each for each in keywords)
        ranked = max(asked["limit"], LEAST_RANKED)
        fused: dict[int, float] = {}
        for scores in (self.near(asked["text"]), self.matching(words, "title", "body")):
            for place, (id, _) in enumerate(self.best(scores, chosen, ranked)):
                fused[id] = fused.get(id, 0.0) + 1 / (K + place + 1)
        return _ordered(fused)[: asked["limit"]]

    def best(self, scores: Scores, chosen: Filter, limit: int) -> Found:
        """The best rows that pass a filter."""
        passing = {id: s for id, s in scores.items() if chosen.passes(self, id, self.rows[id])}
        return _ordered(passing)[:limit]

    def matching(self, query: str, *columns: str) -> Scores:
        """BM25 of each row that a query finds."""
        ids = list(self.rows)
        texts = {name: [getattr(self.rows[id], name) for id in ids] for name in columns}
        analyzer = Analyzer("english")
        oracle = Oracle(dict.fromkeys(columns, 1.0), texts, [True] * len(ids), analyzer)
        return {ids[row]: s for row, s in oracle.scores(parse(query, analyzer)).items()}

    def near(self, text: str) -> Scores:
        """The cosine of each row."""
        query = self._vector(text)
        bodies = {id: row.body for id, row in self.rows.items() if row.body is not None}
        found = {}
        for id, body in bodies.items():
            vector = self._vector(body)
            lengths = np.sqrt((vector * vector).sum()) * np.sqrt((query * query).sum())
            if lengths > 0:
                found[id] = float((vector * query).sum() / lengths)
        return found

    def _vector(self, text: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        values = self._model.embed([text]).vectors.flatten().to_numpy(zero_copy_only=False)
        vector: np.ndarray[tuple[int], np.dtype[np.float64]] = values.astype(np.float64)
        return vector

    def _query(self, most: int) -> str:
        return self.random.choice(QUERIES) if self.random.random() < 0.3 else self.text(most)

    def _row(self) -> Row:
        title = None if self.random.random() < 0.2 else self.text(3)
        body = None if self.random.random() < 0.1 else self.text(12)
        return Row(self.random.choice("abc"), title, body)


def _ordered(scores: Scores) -> Found:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _sql(item: tuple[int, Row]) -> str:
    id, row = item
    return f"({id}, {_text(row.kind)}, {_text(row.title)}, {_text(row.body)})"


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def literal(value: str) -> str:
    """A text as SQL."""
    return _text(value)


def ids_and_scores(rows: Sequence[Mapping[str, Any]], score: str = "score") -> Found:
    """The rows of an answer as an oracle has them."""
    return [(row["id"], row[score]) for row in rows]

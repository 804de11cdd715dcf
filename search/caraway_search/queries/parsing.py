"""Reads what a user types: words, "phrases", +must, -not, AND, OR, NOT, (groups), pre*, fuzzy~1.

Words that nothing joins are alternatives: rows with more and rarer ones come first. Stop words
among them count only where there is nothing else: in a small table, "and" may be the rarest word of
a question. They are not left out of an index, so that phrases find them. AND and OR have no
precedence: AND makes both of its neighbours necessary. What makes no sense as an operator is a
separator, so every text is a query.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from caraway_search.analysis.analyzer import LONGEST_TERM, Analyzer, Piece
from caraway_search.analysis.stop_words import is_stop_word
from caraway_search.queries.tree import (
    Clause,
    Fuzzy,
    Group,
    Leaf,
    Occurrence,
    Phrase,
    Prefix,
    QueryNode,
    QueryTerm,
)

MOST_LEAVES = 256
"""The leaves of a query that count; each costs a look at every segment."""
MOST_CHARACTERS = 100_000
"""The characters of a query that are read."""
_LONGEST_WORD = MOST_LEAVES * LONGEST_TERM
"""The characters of one word that are read: enough for the most leaves."""
_LONGEST_KEPT = 1_000
"""The characters of a query that is kept."""
DEEPEST = 8
"""Groups below this depth belong to the group around them."""

_PART = re.compile(
    r"""(?P<phrase>[+\-]?"[^"]*"(?:~\d*)?)
      | (?P<open>[+\-]?\()
      | (?P<close>\))
      | (?P<word>[^\s()"]+)""",
    re.VERBOSE,
)
_ENDING = re.compile(r"(?P<prefix>\*)?(?:~(?P<edits>[0-2]?))?\Z")
_OPERATORS = {"AND": Occurrence.MUST, "OR": None, "NOT": Occurrence.MUST_NOT}


def parse(text: str, analyzer: Analyzer) -> Group:
    """The query of a text, in the terms of an analyzer."""
    if len(text) > _LONGEST_KEPT:
        return _parsed(text, analyzer)
    return _kept(text, analyzer)


@lru_cache(maxsize=1024)
def _kept(text: str, analyzer: Analyzer) -> Group:
    # A search needs the query of its text several times, and often of the same text again.
    return _parsed(text, analyzer)


def _parsed(text: str, analyzer: Analyzer) -> Group:
    return _Parser(analyzer).group(_parts(text[:MOST_CHARACTERS]), 0)


@dataclass(frozen=True, slots=True)
class _Part:
    kind: Literal["phrase", "open", "close", "word", "operator"]
    text: str
    sign: str = ""


def _parts(text: str) -> Iterator[_Part]:
    for match in _PART.finditer(text):
        kind, part = match.lastgroup, match.group()
        if kind == "word" and part in _OPERATORS:
            yield _Part("operator", part)
            continue
        sign = part[0] if part[0] in "+-" else ""
        if kind == "phrase":
            yield _Part("phrase", part[len(sign) :].rpartition('"')[0].lstrip('"'), sign)
        elif kind == "open":
            yield _Part("open", "", sign)
        elif kind == "close":
            yield _Part("close", "")
        else:
            yield _Part("word", part[len(sign) :], sign)


class _Parser:
    """Reads parts until a limit of leaves is reached; the rest is left out."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._room = MOST_LEAVES

    def group(self, parts: Iterator[_Part], depth: int) -> Group:
        clauses: list[Clause] = []
        stop_words: list[int] = []
        operator = ""
        for part in parts:
            if part.kind == "operator":
                operator = part.text
                continue
            if part.kind == "close":
                if depth:
                    break
                continue
            occurrence = _occurrence(part.sign, operator)
            found = list(self._clauses(part, occurrence, parts, depth))
            if found and operator == "AND":
                _require_last(clauses)
            if found and self._is_stop_word(part):
                stop_words.append(len(clauses))
            clauses.extend(found)
            operator = ""
        return Group(_without(clauses, stop_words))

    def _is_stop_word(self, part: _Part) -> bool:
        """True if a part is one plain word, and a stop word."""
        if part.kind != "word" or part.sign:
            return False
        pieces = self._analyzer.pieces(part.text[:_LONGEST_WORD], 2)
        language = self._analyzer.language
        return len(pieces) == 1 and is_stop_word(pieces[0].text, language)

    def _clauses(
        self, part: _Part, occurrence: Occurrence, parts: Iterator[_Part], depth: int
    ) -> Iterator[Clause]:
        if part.kind == "open":
            if depth >= DEEPEST:
                return
            group = self.group(parts, depth + 1)
            if group.clauses:
                yield Clause(occurrence, group)
            return
        nodes = self._phrase(part.text) if part.kind == "phrase" else self._word(part.text)
        if not nodes:
            return
        if occurrence is Occurrence.MUST_NOT and len(nodes) > 1:
            # Rows with all parts of a word are left out, not rows with any of them.
            necessary = tuple(Clause(Occurrence.MUST, node) for node in nodes)
            yield Clause(occurrence, Group(necessary))
            return
        yield from (Clause(occurrence, node) for node in nodes)

    def _word(self, word: str) -> list[QueryNode]:
        ending = _ENDING.search(word)
        assert ending is not None  # an empty ending is always found
        pieces = self._pieces(word[: ending.start()])
        if not pieces:
            return []
        nodes: list[Leaf] = [leaf for piece in pieces[:-1] for leaf in self._leaves(piece)]
        return self._counted([*nodes, *self._last(pieces[-1], ending)])

    def _last(self, piece: Piece, ending: re.Match[str]) -> list[Leaf]:
        if piece.kind == "word":
            stem = self._analyzer.stem(piece.text)
            if ending["prefix"]:
                return [Prefix(piece.text, stem)]
            edits = ending["edits"]
            if edits is not None and edits != "0":
                return [Fuzzy(stem, int(edits) if edits else 1 if len(stem) < 6 else 2)]
        return self._leaves(piece)

    def _phrase(self, text: str) -> list[QueryNode]:
        pieces = self._pieces(text)
        last = self._leaves(pieces[-1]) if pieces else []
        if any(isinstance(leaf, Prefix) for leaf in last):
            return self._counted([leaf for piece in pieces for leaf in self._leaves(piece)])
        # Only the last piece may go on in a text. Others end there, and so with a last character
        # that is a term of its own.
        terms = [term for piece in pieces[:-1] for term in self._analyzer.terms(piece)]
        terms += [leaf.term for leaf in last if isinstance(leaf, QueryTerm)]
        if len(terms) == 1:
            return self._counted([QueryTerm(terms[0])])
        terms = terms[: max(self._room, 0)]
        self._room -= len(terms)
        return [Phrase(tuple(terms))] if terms else []

    def _pieces(self, text: str) -> list[Piece]:
        room = max(self._room, 0)
        if not room:
            return []
        words = (word[:_LONGEST_WORD] for word in self._analyzer.words(text)[:room])
        pieces = (piece for word in words for piece in self._analyzer.pieces(word, room))
        return list(islice(pieces, room))

    def _leaves(self, piece: Piece) -> list[Leaf]:
        """Return the leaves that find a piece; its last character is not a pair and is left out."""
        if piece.kind == "unspaced" and len(piece.text) == 1:
            return [Prefix(piece.text, piece.text)]
        terms = self._analyzer.terms(piece)
        return [QueryTerm(term) for term in (terms[:-1] if piece.kind == "unspaced" else terms)]

    def _counted(self, leaves: list[Leaf]) -> list[QueryNode]:
        kept = leaves[: max(self._room, 0)]
        self._room -= len(kept)
        return list(kept)


def _without(clauses: list[Clause], stop_words: list[int]) -> tuple[Clause, ...]:
    """Return the clauses without optional stop words, or all of them if no other clause is left."""
    dropped = {at for at in stop_words if clauses[at].occurrence is Occurrence.SHOULD}
    kept = tuple(clause for at, clause in enumerate(clauses) if at not in dropped)
    if any(clause.occurrence is not Occurrence.MUST_NOT for clause in kept):
        return kept
    return tuple(clauses)


def _occurrence(sign: str, operator: str) -> Occurrence:
    if sign == "-" or operator == "NOT":
        return Occurrence.MUST_NOT
    if sign == "+" or operator == "AND":
        return Occurrence.MUST
    return Occurrence.SHOULD


def _require_last(clauses: list[Clause]) -> None:
    if clauses and clauses[-1].occurrence is Occurrence.SHOULD:
        clauses[-1] = Clause(Occurrence.MUST, clauses[-1].node)

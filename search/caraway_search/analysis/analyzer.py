"""Turns texts into terms, whole columns at a time.

Arrow splits a column into words and numbers the distinct ones. Only distinct words are folded and
stemmed, in Python, so the cost is that of the vocabulary and not of the texts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer
from numpy.typing import NDArray

from caraway_search.analysis.scripts import (
    APOSTROPHES,
    WORD_BREAK,
    fold,
    is_unspaced,
    is_word_character,
)
from caraway_search.errors import InvalidSearchError

VERSION = 2
"""Changes when the same text would get other terms."""
LANGUAGES: tuple[str, ...] = ("none", *Stemmer.algorithms())
LONGEST_TERM = 64
"""Characters of a word that count; it may be the base64 of a picture."""

_ASCII_BREAK = re.compile(r"[^A-Za-z0-9']+")
_ELIDING = frozenset({"catalan", "french", "italian"})
"""Languages in which an apostrophe separates two words."""

_SPLIT_AT_ONCE = 8192
_STEMMED_AT_ONCE = 256
"""The stemmer keeps other threads from running during a call, and searches must not wait."""

PieceKind = Literal["word", "unspaced"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word that is analysed alone: folded text of scripts of one kind."""

    kind: PieceKind
    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """The terms of a column. Text `n` has the next `counts[n]` of `ids`; NULL has none.

    `terms` is a string array of Arrow.
    """

    terms: Any
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of some texts: the different ones, which each place has, and how many a text."""

    different: Any
    indices: NDArray[np.int32]
    lengths: NDArray[np.int32]

    @classmethod
    def from_texts(cls, texts: Any) -> Self:
        """Split a string array of Arrow."""
        words = pc.split_pattern_regex(texts.cast(pa.large_string()), WORD_BREAK)
        lengths = pc.fill_null(pc.list_value_length(words), 0).cast(pa.int32())
        encoded = words.flatten().dictionary_encode()
        numbers = (each.to_numpy(zero_copy_only=False) for each in (encoded.indices, lengths))
        return cls(encoded.dictionary, *numbers)


_NO_NUMBERS = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Turns the texts of a column into terms; `language` is one of `LANGUAGES`.

    A run of characters of a script without spaces becomes its pairs of neighbours and its last
    character, so a part of two or more characters is found as a phrase and one character as a
    prefix.
    """

    language: str = "english"

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            known = ", ".join(LANGUAGES)
            raise InvalidSearchError(f"no stemming for language {self.language!r}; known: {known}")

    def tokens(self, texts: object) -> Tokens:
        """The terms of a string column of Arrow."""
        blocks = [_Words.from_texts(each) for each in _blocks(texts)]
        different = [pa.array([], pa.large_string()), *(each.different for each in blocks)]
        encoded = pa.concat_arrays(different).dictionary_encode()
        terms, word_terms, word_starts = self._vocabulary(encoded.dictionary)
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        ids, counts, first = [_NO_NUMBERS], [_NO_NUMBERS], 0
        while blocks:
            block = blocks.pop(0)
            found = numbers[first : first + len(block.different)][block.indices]
            first += len(block.different)
            term_counts = np.diff(word_starts)[found]
            ids.append(_ragged(word_terms, word_starts[:-1][found], term_counts).astype(np.int32))
            ends = np.concatenate(([0], np.cumsum(term_counts)))
            ends = ends[np.cumsum(block.lengths, dtype=np.int64)]
            counts.append(np.diff(ends, prepend=0).astype(np.int32))
        return Tokens(terms, np.concatenate(ids), np.concatenate(counts))

    def words(self, text: str) -> list[str]:
        """The words of a text as it is split, before they are analysed."""
        if text.isascii():
            # Arrow compiles its expression at each call, which takes a millisecond.
            return [word for word in _ASCII_BREAK.split(text) if word]
        found = pc.split_pattern_regex(pa.scalar(_valid(text), pa.large_string()), WORD_BREAK)
        return [word for word in found.as_py() if word]

    def pieces(self, word: str, most: int | None = None) -> list[Piece]:
        """The parts of one word that are analysed alone, or the first of them."""
        return list(islice(self._pieces(word), most))

    def terms(self, piece: Piece) -> tuple[str, ...]:
        """The terms of a piece, as they are in an index."""
        if piece.kind == "unspaced":
            return _pairs(piece.text)
        return (self.stem(piece.text),)

    def stem(self, folded: str) -> str:
        """The term of a folded word."""
        return self._stems([folded])[0]

    def _pieces(self, word: str) -> Iterator[Piece]:
        for run in _runs(word):
            parts = run.text.split("'") if self.language in _ELIDING else [run.text.strip("'")]
            yield from (Piece(run.kind, part) for part in parts if part)

    def _stems(self, folded: list[str]) -> list[str]:
        if self.language == "none":
            return [_cut(word) for word in folded]
        stemmed = _stemmed(self.language, [_cut(word) for word in folded])
        # The stemmer of English removes suffixes after an apostrophe.
        return [stem.replace("'", "") or word for stem, word in zip(stemmed, folded, strict=True)]

    def _vocabulary(self, words: Any) -> tuple[object, NDArray[np.int64], NDArray[np.int64]]:
        """Distinct terms, and those of each word: their ids one after the other, and the starts."""
        is_plain = _are_plain(words)
        plain = pc.ascii_lower(words.filter(is_plain)).dictionary_encode()
        plain_terms = pa.array(self._stems(plain.dictionary.to_pylist()), pa.large_string())
        others = self._all_terms(words.filter(pc.invert(is_plain)).to_pylist())
        other_terms = pa.array([term for each in others for term in each], pa.large_string())
        encoded = pa.concat_arrays([plain_terms, other_terms]).dictionary_encode()
        found = encoded.indices.to_numpy(zero_copy_only=False)
        flags = is_plain.to_numpy(zero_copy_only=False)
        counts = np.ones(len(words), np.int64)
        counts[~flags] = [len(each) for each in others]
        ids = np.empty(counts.sum(), np.int64)
        is_of_plain = np.repeat(flags, counts)
        ids[is_of_plain] = found[plain.indices.to_numpy(zero_copy_only=False)]
        ids[~is_of_plain] = found[len(plain_terms) :]
        return encoded.dictionary, ids, np.concatenate(([0], np.cumsum(counts)))

    def _all_terms(self, words: Sequence[str]) -> list[list[str]]:
        """The terms of each word."""
        pieces = [self.pieces(word) for word in words]
        texts = dict.fromkeys(p.text for parts in pieces for p in parts if p.kind == "word")
        stems = dict(zip(texts, self._stems(list(texts)), strict=True))
        return [
            [t for p in parts for t in ((stems[p.text],) if p.kind == "word" else _pairs(p.text))]
            for parts in pieces
        ]


def _blocks(texts: Any) -> Iterator[object]:
    """Cut texts into blocks: what splitting takes is ten times as large as the texts."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for chunk in chunks:
        for first in range(0, len(chunk), _SPLIT_AT_ONCE):
            yield chunk.slice(first, _SPLIT_AT_ONCE)


def _are_plain(words: object) -> Any:
    """Which words are one term, whose only folding is that of capital letters."""
    is_simple = pc.and_(pc.string_is_ascii(words), pc.not_equal(words, ""))
    return pc.and_not(is_simple, pc.match_substring(words, "'"))


def _runs(word: str) -> Iterator[Piece]:
    if word.isascii():
        yield Piece("word", word.lower())
        return
    # Folding may bring characters that end words, as in ½ and in ligatures of Arabic.
    for kind, characters in groupby(fold(word), _kind):
        if kind is not None:
            yield Piece(kind, "".join(characters).replace("\u2019", "'"))


@lru_cache(maxsize=8192)
def _kind(character: str) -> PieceKind | None:
    if is_unspaced(character):
        return "unspaced"
    if character in APOSTROPHES or is_word_character(character):
        return "word"
    return None


def _pairs(run: str) -> tuple[str, ...]:
    return (*(run[i : i + 2] for i in range(len(run) - 1)), run[-1])


def _cut(word: str) -> str:
    return word[:LONGEST_TERM]


def _valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _ragged(
    values: NDArray[np.int64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The runs of `values` that begin at `starts`, one after the other."""
    if len(values) == 0:
        return values
    if (counts == 1).all():
        return values[starts]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    gathered: NDArray[np.int64] = values[np.repeat(starts, counts) + within]
    return gathered


def _stemmed(language: str, words: Sequence[str]) -> list[str]:
    stemmer = _stemmer(language)
    found: list[str] = []
    for start in range(0, len(words), _STEMMED_AT_ONCE):
        found += stemmer.stemWords(words[start : start + _STEMMED_AT_ONCE])
    return found


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Any:
    # Without its cache, which sorts itself whenever it is full: words are distinct here.
    return Stemmer.Stemmer(language, 0)

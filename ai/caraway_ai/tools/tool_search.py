"""Finds tools by their descriptions: four rankings of all tools, fused by reciprocal ranks."""

import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caraway_ai.tools.protocol import JsonSchema, ToolDefinition
from caraway_core.errors import CarawayError
from caraway_core.sqltext.searching import RRF_K

logger = logging.getLogger(__name__)

_K1, _B = 1.2, 0.75
_WORD = re.compile(
    r"(?P<initials>[A-Z]{2,})s(?![a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+"
)
_COMMON = frozenset("a an and as at by for from in into is it of on or that the to with".split())
Vector = Sequence[float]
Embed = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
"""Turns texts into vectors of one length."""


@dataclass(frozen=True, slots=True)
class ToolMatchSource:
    """The place of a tool in one of the rankings."""

    source: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that was found; `score` is in 0 to 1."""

    tool: ToolDefinition
    score: float
    matched_terms: tuple[str, ...]
    sources: tuple[ToolMatchSource, ...]


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """A search for tools. `keywords` are words that names or descriptions must contain."""

    text: str
    keywords: tuple[str, ...] = ()
    limit: int = 5
    min_score: float = 0.0


@dataclass(slots=True)
class ToolIndex:
    """The words of some tools; their vectors are computed on first use."""

    tools: Sequence[ToolDefinition]
    _texts: "_Words" = field(init=False)
    _schemas: "_Words" = field(init=False)
    _vectors: Sequence[Vector] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._texts = _Words([words(f"{each.name} {each.description}") for each in self.tools])
        self._schemas = _Words([words(_schema_text(each.parameters)) for each in self.tools])

    async def search(self, query: ToolQuery, embed: Embed | None = None) -> list[ToolMatch]:
        """Return the best tools, best first."""
        asked = words(query.text)
        keywords = [word for each in query.keywords for word in words(each)]
        rankings = {
            "full_text": self._texts.scores(asked),
            "keyword": self._keyword_scores(keywords or asked),
            "schema": self._schemas.scores([*asked, *keywords]),
        }
        if embed is not None:
            try:
                rankings["vector"] = await self._similarities(query.text, embed)
            except CarawayError as exc:
                # The other rankings still say much.
                logger.warning("not ranked by meaning", extra={"reason": exc.message})
        found = _fused(rankings)
        terms = {*asked, *keywords}
        matches = [
            ToolMatch(
                self.tools[number],
                score,
                tuple(sorted(terms & self._known(number))),
                tuple(sources),
            )
            for number, score, sources in found
            if score >= query.min_score
        ]
        return matches[: query.limit]

    def _known(self, number: int) -> set[str]:
        return {*self._texts.counts[number], *self._schemas.counts[number]}

    def _keyword_scores(self, keywords: Sequence[str]) -> dict[int, float]:
        """Count the keywords that the name of a tool contains twice, for a name says most."""
        wanted = set(keywords)
        scores = {}
        for number, tool in enumerate(self.tools):
            found = len(wanted & set(words(tool.name))) * 2
            found += len(wanted & self._texts.counts[number].keys())
            if found:
                scores[number] = float(found)
        return scores

    async def _similarities(self, text: str, embed: Embed) -> dict[int, float]:
        if self._vectors is None:
            self._vectors = await embed([f"{each.name}: {each.description}" for each in self.tools])
        (asked,) = await embed([text])
        scores = {number: _cosine(asked, each) for number, each in enumerate(self._vectors)}
        return {number: score for number, score in scores.items() if score > 0}


class _Words:
    """Ranks texts by BM25."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self.counts = [Counter(text) for text in texts]
        self._holding = Counter(word for count in self.counts for word in count)
        self._lengths = [len(text) for text in texts]
        self._mean = sum(self._lengths) / len(texts) if texts else 1.0

    def scores(self, asked: Iterable[str]) -> dict[int, float]:
        wanted = sorted(set(asked))
        scores = {number: self._score(number, wanted) for number in range(len(self.counts))}
        return {number: score for number, score in scores.items() if score > 0}

    def _score(self, number: int, wanted: Iterable[str]) -> float:
        count, total = self.counts[number], 0.0
        norm = _K1 * (1 - _B + _B * self._lengths[number] / (self._mean or 1.0))
        for word in wanted:
            if times := count[word]:
                holding = self._holding[word]
                weight = math.log(1 + (len(self.counts) - holding + 0.5) / (holding + 0.5))
                total += weight * times * (_K1 + 1) / (times + norm)
        return total


def words(text: str) -> list[str]:
    """Return the words of a text in lower case and without plural endings; splits `snake_case`."""
    found = ((each["initials"] or each[0]).lower() for each in _WORD.finditer(text))
    return [_stem(word) for word in found if word not in _COMMON]


def _stem(word: str) -> str:
    for ending, instead in (("ies", "y"), ("ing", ""), ("sses", "ss"), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
            return word.removesuffix(ending) + instead
    return word


def _schema_text(schema: JsonSchema) -> str:
    parts: list[str] = []
    for name, each in schema.get("properties", {}).items():
        parts.append(name)
        if isinstance(each, dict):
            parts.append(str(each.get("description", "")))
            parts += map(str, each.get("enum", ()))
    return " ".join(parts)


def _fused(
    rankings: Mapping[str, Mapping[int, float]],
) -> list[tuple[int, float, list[ToolMatchSource]]]:
    """Fuse rankings; a tool that is first in all of them has the score 1."""
    best = len(rankings) / (RRF_K + 1)
    totals: Counter[int] = Counter()
    sources: dict[int, list[ToolMatchSource]] = {}
    for source, scores in rankings.items():
        ordered_scores = sorted(scores.values(), reverse=True)
        # The order of tools says nothing, so equal scores have one rank.
        ranks = {score: rank for rank, score in reversed([*enumerate(ordered_scores, start=1)])}
        for number, score in scores.items():
            rank = ranks[score]
            totals[number] += 1 / (RRF_K + rank)  # type: ignore[assignment] # a float counts, too
            tool_match_source = ToolMatchSource(source, rank, round(score, 6))
            sources.setdefault(number, []).append(tool_match_source)
    ordered = sorted(totals, key=lambda number: (-totals[number], number))
    return [(number, round(totals[number] / best, 6), sources[number]) for number in ordered]


def _cosine(left: Vector, right: Vector) -> float:
    product = sum(a * b for a, b in zip(left, right, strict=True))
    lengths = math.sqrt(sum(a * a for a in left) * sum(b * b for b in right))
    return product / lengths if lengths else 0.0

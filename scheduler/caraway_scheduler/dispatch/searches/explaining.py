"""Describes the searches of a statement for EXPLAIN and EXPLAIN ANALYZE."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caraway_core.protocols.searching import SearchWay
from caraway_core.sqltext.searching import SearchMethod, TableSearch
from caraway_core.statements.searches import FusedSearches, RerankedRows, StatementSearch

_INDENT = "  "
_LONGEST_TEXT = 100
_METHODS = {
    SearchMethod.VECTOR: "vector search",
    SearchMethod.TEXT: "text search",
    SearchMethod.HYBRID: "hybrid search",
}


@dataclass(frozen=True, slots=True)
class RanSearch:
    """The way in which a search of a table ran, or would run; None for what only running shows."""

    search: TableSearch
    way: SearchWay
    row_count: int | None = None
    elapsed_ms: float | None = None


def described(searches: Sequence[StatementSearch], ran: Sequence[RanSearch]) -> str:
    """Describe searches in a few lines each."""
    by_search = {each.search: each for each in ran}
    lines: list[str] = []
    for each in searches:
        lines += _lines(each, by_search)
    return "\n".join(lines) or "no search: the statement reads no rows of one"


def _lines(each: StatementSearch, ran: dict[TableSearch, RanSearch]) -> Iterator[str]:
    match each.work:
        case TableSearch() as search:
            yield f"{each.name}: {_search(search, ran)}"
        case FusedSearches() as fusion:
            decay = f", {fusion.decay.kind} decay by {fusion.decay.column}" if fusion.decay else ""
            yield (
                f"{each.name}: reciprocal rank fusion by {', '.join(fusion.key)}: k={fusion.k:g}"
                f"{decay}, limit={each.limit}"
            )
            for part in fusion.searches:
                yield f"{_INDENT}weight {part.weight:g}: {_search(part.search, ran)}"
        case RerankedRows() as rows:
            yield (
                f"{each.name}: rerank by {rows.model or 'words in common'} of column "
                f"{rows.column}, query={_text(rows.query)}, limit={each.limit}"
            )
            yield f"{_INDENT}input: {' '.join(rows.sql.split())}"


def _search(search: TableSearch, ran: dict[TableSearch, RanSearch]) -> str:
    ran_search = ran.get(search)
    column = ran_search.way.column if ran_search else search.column
    parts = [
        f"{_METHODS[search.method]} of {search.table}.{column}: query={_text(search.text)}",
        f"columns=[{', '.join(search.columns)}]",
        f"limit={search.limit}",
        f"filter={search.where or 'none'}",
    ]
    if ran_search is not None:
        parts.append(f"index={ran_search.way.index}")
        parts += [f"{name}={value}" for name, value in ran_search.way.details.items()]
        if ran_search.row_count is not None and ran_search.elapsed_ms is not None:
            parts.append(f"{ran_search.row_count} rows, {ran_search.elapsed_ms:.1f} ms")
    return ", ".join(parts)


def _text(query: str) -> str:
    short = query if len(query) <= _LONGEST_TEXT else f"{query[:_LONGEST_TEXT]}…"
    return repr(short)

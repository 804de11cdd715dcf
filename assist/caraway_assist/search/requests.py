"""A request to search several tables, and its limits."""

from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import predicates
from caraway_core.sqltext.searching import MOST_HITS

MOST_TEXT_BYTES = 64 * 1024
MOST_WHERE_BYTES = 256 * 1024
MOST_TABLES = 100
MOST_NAMES = 1_000
"""The most additional columns, and the most keywords."""
LEAST_RANKED = 100
"""The least number of rows in fused rankings: a smaller limit does not change the order."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search of some tables by meaning and by words.

    Rows match `keywords` where those are given, and otherwise the words of `text`.
    """

    text: str
    datasets: tuple[str, ...]
    limit: int = MOST_HITS
    where: str | None = None
    additional_columns: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    def check(self) -> None:
        """Check the limits of each field.

        Raises:
            InvalidQueryError: one of them is out of bounds; the message says what to do.
        """
        if not self.text.strip():
            raise InvalidQueryError("'text' is empty; send what to search for")
        if _size(self.text) > MOST_TEXT_BYTES:
            raise InvalidQueryError(
                f"'text' has more than {MOST_TEXT_BYTES} bytes; search for a part of it"
            )
        if not self.datasets:
            raise InvalidQueryError(
                "'datasets' names no dataset; name those to search, as in "
                '{"text": "...", "datasets": ["docs"]}'
            )
        if len(self.datasets) > MOST_TABLES:
            raise InvalidQueryError(f"'datasets' has more than {MOST_TABLES} names; send fewer")
        if not 1 <= self.limit <= MOST_HITS:
            raise InvalidQueryError(f"'limit' is {self.limit}; it must be from 1 to {MOST_HITS}")
        if self.where is not None and _size(self.where) > MOST_WHERE_BYTES:
            raise InvalidQueryError(
                f"'where' has more than {MOST_WHERE_BYTES} bytes; put its values into a dataset"
            )
        for field, names in (
            ("additional_columns", self.additional_columns),
            ("keywords", self.keywords),
        ):
            if len(names) > MOST_NAMES:
                raise InvalidQueryError(f"'{field}' has more than {MOST_NAMES} entries; send fewer")
        if sum(map(_size, self.keywords)) > MOST_TEXT_BYTES:
            raise InvalidQueryError(
                f"'keywords' have more than {MOST_TEXT_BYTES} bytes; send fewer or shorter ones"
            )
        if any(not each.strip() for each in self.keywords):
            raise InvalidQueryError("'keywords' has an empty entry; remove it")

    @property
    def predicate(self) -> str | None:
        """The predicate in parentheses.

        Raises:
            InvalidQueryError: it is not one predicate.
        """
        return None if self.where is None else predicates.in_parentheses(self.where)

    @property
    def words(self) -> str:
        """The query of text rankings. A keyword of several words is a phrase."""
        return words(self.text, self.keywords)

    @property
    def ranked(self) -> int:
        """The number of rows in each ranking, if several are fused."""
        return max(self.limit, LEAST_RANKED)


def words(text: str, keywords: tuple[str, ...]) -> str:
    """Return the query of text rankings for a text, or for keywords if there are any."""
    if not keywords:
        return text
    plain = (" ".join(each.replace('"', " ").split()) for each in keywords)
    return " ".join(f'"{each}"' if " " in each else each for each in plain)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))

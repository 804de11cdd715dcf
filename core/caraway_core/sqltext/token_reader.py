"""Takes the tokens of statements one after the other, where the engine shows nothing of them."""

from collections.abc import Iterator, Sequence

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

_QUOTES = '"`'


class TokenReader:
    """The tokens of a text, with the place of the next one."""

    def __init__(self, text: str, tokens: Sequence[SqlToken]) -> None:
        """Take a text and its tokens without comments."""
        self._text = text
        self._tokens = tokens
        self._place = 0

    @classmethod
    def of(cls, sql: str) -> "TokenReader":
        """Read a text, whose comments are left out."""
        text = lexer.plain(sql)
        return cls(text, tuple(lexer.significant(text)))

    @property
    def has_more(self) -> bool:
        """True if a token is left; a semicolon is the end."""
        return self._place < len(self._tokens) and self._tokens[self._place].kind != "end"

    def word(self) -> str:
        """Return the next token in upper case; empty at the end."""
        return self._tokens[self._place].text.upper() if self.has_more else ""

    def left(self) -> Sequence[SqlToken]:
        """Return the tokens that are left."""
        return self._tokens[self._place :]

    def takes(self, *words: str) -> bool:
        """Take words if they are the next ones."""
        following = self._tokens[self._place : self._place + len(words)]
        if tuple(each.text.upper() for each in following) != words:
            return False
        self._place += len(words)
        return True

    def needs(self, *words: str) -> None:
        """Take words.

        Raises:
            InvalidQueryError: others are the next ones.
        """
        if not self.takes(*words):
            raise InvalidQueryError(f"'{' '.join(words)}' is missing before '{self.word()[:50]}'")

    def name(self) -> tuple[str, ...]:
        """Take a name of one or more parts."""
        parts = [self.written_name()[1]]
        while self.takes("."):
            parts.append(self.written_name()[1])
        return tuple(parts)

    def written_name(self) -> tuple[str, str]:
        """Take a name of one part: as it is written, and as it is."""
        token = self._tokens[self._place] if self.has_more else None
        if token is None or token.kind not in ("word", "name"):
            raise InvalidQueryError(f"a name is missing before '{token.text if token else ''}'")
        self._place += 1
        return token.text, name_of(token)

    def up_to(self, *words: str) -> str:
        """Take the text before one of these words, outside of parentheses and of CASE."""
        taken = self.part(*words).left()
        return self._text[taken[0].start : taken[-1].end] if taken else ""

    def part(self, *words: str) -> "TokenReader":
        """Return a reader of the tokens before one of these words, outside of parentheses."""
        begin, depth = self._place, 0
        while self.has_more and (depth or self.word() not in words):
            token = self._tokens[self._place]
            depth += token.kind == "open" or self.word() == "CASE"
            depth -= token.kind == "close" or (self.word() == "END" and depth > 0)
            self._place += 1
        return TokenReader(self._text, self._tokens[begin : self._place])

    def parts(self, separator: str) -> Iterator["TokenReader"]:
        """Yield readers of what separators outside of parentheses divide."""
        while self.has_more:
            yield self.part(separator)
            self.takes(separator)

    def inside(self) -> "TokenReader":
        """Return a reader of the tokens inside of the parentheses around them."""
        return TokenReader(self._text, self._tokens[self._place + 1 : -1])

    def listed(self, missing: str) -> Iterator["TokenReader"]:
        """Take a list in parentheses, and yield a reader for each of its parts.

        Raises:
            InvalidQueryError: there is none.
        """
        if not self.takes("("):
            raise InvalidQueryError(missing)
        while True:
            yield self.part(",", ")")
            if self.takes(")"):
                return
            if not self.takes(","):
                raise InvalidQueryError("a closing parenthesis is missing")

    def rest(self, missing: str) -> str:
        """Take all that is left.

        Raises:
            InvalidQueryError: it is nothing.
        """
        if not self.has_more:
            raise InvalidQueryError(missing)
        return self._text[self._tokens[self._place].start :]

    def end(self, rule: str) -> None:
        """Refuse further tokens, except semicolons.

        Raises:
            InvalidQueryError: more is left.
        """
        if self.has_more:
            raise InvalidQueryError(f"{rule}; '{self.word()[:50]}' is not supported")
        if any(each.kind != "end" for each in self._tokens[self._place :]):
            raise InvalidQueryError("send one statement at a time")


def name_of(token: SqlToken) -> str:
    """Return the name that a token writes."""
    if token.text[0] in _QUOTES:
        quote = token.text[0]
        return token.text[1:-1].replace(quote * 2, quote)
    return token.text.lower()

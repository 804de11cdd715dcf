"""Reads the statements that create and drop tables; the engine plans only queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken

VERBS = ("CREATE", "DROP")
_QUOTES = '"`'
_LENGTH_IS_LOST = frozenset({"VARCHAR", "CHAR", "CHARACTER", "NVARCHAR", "BPCHAR", "VARBINARY"})
_CONSTRAINTS = frozenset({"CONSTRAINT", "UNIQUE", "CHECK", "FOREIGN", "INDEX", "KEY", "LIKE"})
_ENDS_TYPE = frozenset(
    {"NOT", "NULL", "PRIMARY", "DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "COLLATE", "GENERATED",
     "CONSTRAINT", "COMMENT", "AUTO_INCREMENT"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A CREATE TABLE: the parts of its name, and a query that has its columns and its rows."""

    name: tuple[str, ...]
    may_exist: bool
    query: str
    required: tuple[str, ...] = ()
    """The columns without NULL."""
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    """A DROP TABLE: the parts of its name."""

    name: tuple[str, ...]
    may_lack: bool


def parse(sql: str) -> CreateTable | DropTable | None:
    """Return what a statement creates or drops; None for others, as those of views.

    Raises:
        InvalidQueryError: it says more than a table can have here.
    """
    if lexer.first_word(sql) not in VERBS:
        return None
    text = lexer.plain(sql)
    reader = _Reader(text, tuple(lexer.significant(text)))
    if reader.takes("DROP", "TABLE"):
        return _dropped(reader)
    if reader.takes("CREATE", "OR", "REPLACE", "TABLE"):
        raise InvalidQueryError(
            "CREATE OR REPLACE TABLE is not supported; write DROP TABLE IF EXISTS before"
        )
    return _created(reader) if reader.takes("CREATE", "TABLE") else None


def _dropped(reader: "_Reader") -> DropTable:
    may_lack = reader.takes("IF", "EXISTS")
    name = reader.name()
    reader.takes("RESTRICT")
    reader.end("DROP TABLE takes one table, and drops nothing that depends on it")
    return DropTable(name, may_lack)


def _created(reader: "_Reader") -> CreateTable:
    may_exist = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name()
    if reader.takes("AS"):
        return CreateTable(name, may_exist, reader.rest())
    columns, required, key = list[str](), list[str](), list[str]()
    for part in reader.listed():
        _define(part, columns, required, key)
    if reader.takes("AS"):
        raise InvalidQueryError(
            "CREATE TABLE ... AS takes the columns of its query; name them there by AS"
        )
    reader.end("CREATE TABLE takes columns alone")
    query = f"SELECT {', '.join(columns)} WHERE FALSE"
    return CreateTable(name, may_exist, query, tuple(required), tuple(key))


def _define(part: "_Reader", columns: list[str], required: list[str], key: list[str]) -> None:
    """Read a column, or the primary key."""
    if part.takes("PRIMARY", "KEY"):
        key += [each.name()[0] for each in part.listed()]
        return
    if part.word() in _CONSTRAINTS:
        raise InvalidQueryError(f"CREATE TABLE: {part.word()} is not supported here")
    written, name = part.written_name()
    columns.append(f"CAST(NULL AS {part.type_of(name)}) AS {written}")
    while part.has_more:
        if part.takes("PRIMARY", "KEY"):
            key.append(name)
        elif part.takes("NOT", "NULL"):
            required.append(name)
        elif not part.takes("NULL"):
            raise InvalidQueryError(
                f"CREATE TABLE: {part.word()} of column '{name}' is not supported; a column has a "
                "type, NOT NULL and PRIMARY KEY"
            )


class _Reader:
    """Takes the tokens of a text, one after the other."""

    def __init__(self, text: str, tokens: Sequence[SqlToken]) -> None:
        self._text = text
        self._tokens = tokens
        self._place = 0

    @property
    def has_more(self) -> bool:
        return self._place < len(self._tokens) and self._tokens[self._place].kind != "end"

    def word(self) -> str:
        """Return the next token in upper case; empty at the end."""
        return self._tokens[self._place].text.upper() if self.has_more else ""

    def takes(self, *words: str) -> bool:
        """Take words if they are the next ones."""
        following = self._tokens[self._place : self._place + len(words)]
        if tuple(each.text.upper() for each in following) != words:
            return False
        self._place += len(words)
        return True

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
        if token.text[0] in _QUOTES:
            quote = token.text[0]
            return token.text, token.text[1:-1].replace(quote * 2, quote)
        return token.text, token.text.lower()

    def type_of(self, column: str) -> str:
        """Take the type of a column."""
        begin = self._place
        while self.has_more and self.word() not in _ENDS_TYPE:
            self._place += 1
        words = self._tokens[begin : self._place]
        if not words:
            raise InvalidQueryError(f"CREATE TABLE: column '{column}' has no type")
        if words[0].text.upper() in _LENGTH_IS_LOST and len(words) > 1:
            raise InvalidQueryError(
                f"CREATE TABLE: the length of column '{column}' would be lost; write TEXT or BYTEA"
            )
        return self._text[words[0].start : words[-1].end]

    def listed(self) -> Iterator["_Reader"]:
        """Take a list in parentheses, and yield a reader for each of its parts."""
        if not self.takes("("):
            raise InvalidQueryError("CREATE TABLE needs AS and a query, or columns in parentheses")
        depth, begin = 0, self._place
        while self.has_more:
            token = self._tokens[self._place]
            self._place += 1
            if depth == 0 and token.text in (",", ")"):
                yield _Reader(self._text, self._tokens[begin : self._place - 1])
                begin = self._place
                if token.text == ")":
                    return
            depth += (token.kind == "open") - (token.kind == "close")
        raise InvalidQueryError("CREATE TABLE: a closing parenthesis is missing")

    def rest(self) -> str:
        """Take all that is left."""
        if not self.has_more:
            raise InvalidQueryError("CREATE TABLE ... AS needs a query")
        return self._text[self._tokens[self._place].start :]

    def end(self, rule: str) -> None:
        """Refuse what is left, except semicolons."""
        if self.has_more:
            raise InvalidQueryError(f"{rule}; '{self.word()[:50]}' is not supported")
        if any(each.kind != "end" for each in self._tokens[self._place :]):
            raise InvalidQueryError("send one statement at a time")

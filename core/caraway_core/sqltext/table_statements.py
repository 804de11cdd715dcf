"""Reads the statements that create and drop tables; the engine plans only queries."""

from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer
from caraway_core.sqltext.token_reader import TokenReader

VERBS = ("CREATE", "DROP")
_LENGTH_IS_LOST = frozenset({"VARCHAR", "CHAR", "CHARACTER", "NVARCHAR", "BPCHAR", "VARBINARY"})
_NO_COLUMNS = "CREATE TABLE needs AS and a query, or columns in parentheses"
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
    reader = TokenReader.of(sql)
    if reader.takes("DROP", "TABLE"):
        return _dropped(reader)
    if reader.takes("CREATE", "OR", "REPLACE", "TABLE"):
        raise InvalidQueryError(
            "CREATE OR REPLACE TABLE is not supported; write DROP TABLE IF EXISTS before"
        )
    return _created(reader) if reader.takes("CREATE", "TABLE") else None


def _dropped(reader: TokenReader) -> DropTable:
    may_lack = reader.takes("IF", "EXISTS")
    name = reader.name()
    reader.takes("RESTRICT")
    reader.end("DROP TABLE takes one table, and drops nothing that depends on it")
    return DropTable(name, may_lack)


def _created(reader: TokenReader) -> CreateTable:
    may_exist = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name()
    if reader.takes("AS"):
        return CreateTable(name, may_exist, reader.rest("CREATE TABLE ... AS needs a query"))
    columns, required, key = list[str](), list[str](), list[str]()
    for part in reader.listed(_NO_COLUMNS):
        _define(part, columns, required, key)
    if reader.takes("AS"):
        raise InvalidQueryError(
            "CREATE TABLE ... AS takes the columns of its query; name them there by AS"
        )
    reader.end("CREATE TABLE takes columns alone")
    query = f"SELECT {', '.join(columns)} WHERE FALSE"
    return CreateTable(name, may_exist, query, tuple(required), tuple(key))


def _define(part: TokenReader, columns: list[str], required: list[str], key: list[str]) -> None:
    """Read a column, or the primary key."""
    if part.takes("PRIMARY", "KEY"):
        key += [each.name()[0] for each in part.listed(_NO_COLUMNS)]
        return
    if part.word() in _CONSTRAINTS:
        raise InvalidQueryError(f"CREATE TABLE: {part.word()} is not supported here")
    written, name = part.written_name()
    columns.append(f"CAST(NULL AS {_type(part, name)}) AS {written}")
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


def _type(part: TokenReader, column: str) -> str:
    """Take the type of a column."""
    first = part.word()
    words = part.up_to(*_ENDS_TYPE)
    if not words:
        raise InvalidQueryError(f"CREATE TABLE: column '{column}' has no type")
    if first in _LENGTH_IS_LOST and "(" in words:
        raise InvalidQueryError(
            f"CREATE TABLE: the length of column '{column}' would be lost; write TEXT or BYTEA"
        )
    return words

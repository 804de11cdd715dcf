"""Validates the two statements of an acceleration: `refresh_sql` and `retention_sql`.

They are embedded in other statements, so their text is checked token by token. Everything else,
above all whether columns exist, is checked when the engine plans them.
"""

from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.manifest.texts import names
from caraway_core.sqltext import comments, lexer
from caraway_core.sqltext.lexer import SqlToken

# Tokens that can hide the end of a literal, and values that nothing binds.
_NOT_UNDERSTOOD = frozenset({"dollar", "placeholder", "variable"})
_STRANGE = frozenset("`$?\\")
_QUOTES = frozenset("'\"")
_ELSEWHERE = frozenset({"SELECT", "JOIN", "UNION", "INTERSECT", "INTO", "TABLE", "RETURNING"})
_CLAUSES = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "WINDOW", "QUALIFY"}
)
_ENDS_A_CONDITION = frozenset({"GROUP", "ORDER", "LIMIT", "HAVING", "OFFSET", "EXCEPT"})


@dataclass(frozen=True, slots=True)
class RefreshSql:
    """The rows to load of a dataset: one SELECT from it that can be put in parentheses.

    `is_filter` is set if only WHERE follows the table, without DISTINCT. Then each row of the
    result depends on one row of the table, unless a column aggregates (`count(*)`).
    """

    text: str
    is_filter: bool


@dataclass(frozen=True, slots=True)
class RetentionSql:
    """The rows of a dataset to delete, as a condition that can be put in parentheses."""

    condition: str


@dataclass(frozen=True, slots=True)
class _Token:
    """A token of a statement; `word` is its text in upper case if it may be a keyword."""

    text: str
    word: str
    depth: int
    is_name: bool
    start: int


def refresh_sql(text: str, dataset: TableName) -> RefreshSql:
    """Parse `SELECT ... FROM dataset ...`.

    Raises:
        ValueError: it is another statement, or reads another table.
    """
    example = f"SELECT * FROM {dataset} WHERE ..."
    try:
        tokens = _statement(text)
        _check(bool(tokens) and tokens[0].word == "SELECT", "does not begin with SELECT")
        _check_one_table(tokens[1:])
        begins = [place for place, _ in enumerate(tokens) if _is_from(tokens, place)]
        _check(len(begins) == 1, "needs one FROM")
        end = _after_table(tokens, begins[0] + 1, dataset)
        _check_tail(tokens[end:])
    except ValueError as exc:
        raise ValueError(f"refresh_sql of '{dataset}' {exc}; write it as: {example}") from None
    later = {token.word for token in tokens[end:] if token.depth == 0}
    is_plain = not later & (_CLAUSES - {"WHERE"}) and "EXCEPT" not in later
    return RefreshSql(_joined(text, 0), is_plain and tokens[1].word != "DISTINCT")


def retention_sql(text: str, dataset: TableName) -> RetentionSql:
    """Parse `DELETE FROM dataset WHERE ...`.

    Raises:
        ValueError: it is another statement, or its condition reads another table.
    """
    example = f"DELETE FROM {dataset} WHERE ..."
    try:
        tokens = _statement(text)
        opening = [token.word for token in tokens[:2]]
        _check(opening == ["DELETE", "FROM"], "does not begin with DELETE FROM")
        end = _after_table(tokens, 2, dataset)
        _check(tokens[end : end + 1] != [] and tokens[end].word == "WHERE", "has no WHERE")
        condition = tokens[end + 1 :]
        _check(condition != [], "has nothing after WHERE")
        _check_one_table(condition)
        ends = [token.word for token in condition if token.depth == 0]
        _check(not _ENDS_A_CONDITION & set(ends), "has more than a condition after WHERE")
    except ValueError as exc:
        raise ValueError(f"retention_sql of '{dataset}' {exc}; write it as: {example}") from None
    return RetentionSql(_joined(text, condition[0].start))


def _statement(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    depth = 0
    for token in lexer.tokens(text):
        _check_understood(token)
        if token.kind == "comment":
            continue
        piece = token.text
        if piece == ")":
            depth -= 1
            _check(depth >= 0, "closes a parenthesis that it did not open")
        is_name = token.kind in ("word", "name")
        tokens.append(
            _Token(piece, piece.upper() if is_name else piece, depth, is_name, token.start)
        )
        depth += piece == "("
    _check(depth == 0, "leaves a parenthesis open")
    while tokens and tokens[-1].word == ";":
        tokens.pop()
    _check(all(token.word != ";" for token in tokens), "holds more than one statement")
    return tokens


def _check_understood(token: SqlToken) -> None:
    first = token.text[0]
    if token.kind == "prefixed":
        prefix = token.text.partition("'")[0].partition('"')[0]
        _check(False, f"holds a text that begins with {prefix}{token.text[len(prefix)]}")
    is_open = first in _QUOTES and token.text.count(first) % 2 != 0
    is_strange = is_open or first in _STRANGE or token.kind in _NOT_UNDERSTOOD
    _check(not is_strange, f"holds {first} where it is not understood")
    is_block = token.kind == "comment" and first == "/"
    _check(not is_block or token.text.endswith("*/", 2), "holds a comment without an end")


def _check_one_table(tokens: list[_Token]) -> None:
    for before, token in zip([None, *tokens], tokens, strict=False):
        _check(token.word not in _ELSEWHERE, f"holds {token.word}: it reads one table only")
        # A subquery may begin with FROM; in `extract(year FROM t)` no parenthesis precedes it.
        is_query = token.word == "FROM" and before is not None and before.text == "("
        _check(not is_query, "holds a second query: it reads one table only")


def _is_from(tokens: list[_Token], place: int) -> bool:
    """Return whether this token starts the FROM clause, and is not part of IS DISTINCT FROM."""
    here = tokens[place]
    return here.word == "FROM" and here.depth == 0 and tokens[place - 1].word != "DISTINCT"


def _after_table(tokens: list[_Token], start: int, dataset: TableName) -> int:
    end = start + 1
    while tokens[end : end + 1] != [] and tokens[end].text == ".":
        end += 2
    written = "".join(token.text for token in tokens[start:end])
    _check(written != "" and tokens[start].is_name, "names no table after FROM")
    table = names.canonical(written)
    is_own = names.identity(table) == names.identity(dataset)
    _check(is_own, f"reads '{table}', not the dataset")
    return end


def _check_tail(tokens: list[_Token]) -> None:
    """Check that an optional alias and then clauses follow the table."""
    rest = tokens[1:] if tokens and tokens[0].word == "AS" else tokens
    if rest and rest[0].is_name and rest[0].word not in _CLAUSES | {"EXCEPT"}:
        rest = rest[1:]
    is_clause = not rest or rest[0].word in _CLAUSES
    _check(is_clause, "has more than one table, or something unknown, after FROM")


def _joined(text: str, start: int) -> str:
    """Return the text from `start` on, without comments, which may contain `)`, and final `;`."""
    return comments.left_out(lexer.plain(text)[start:]).strip().rstrip("; \n")


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)

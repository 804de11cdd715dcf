"""Measures how large a statement is before the engine sees it, in one pass over its tokens.

What a statement reads through CTEs and views counts once per read, because the engine plans it each
time. Text that is not SQL has a size, too; the engine reports its errors.
"""

import re
from collections.abc import Callable, Mapping

from caraway_core.sqltext import grammar, lexer
from caraway_engine.statements.sizes import Frame, Size, StatementScope

_NAME = re.compile(grammar.CLOSED_NAME, re.VERBOSE)
_TABLE = re.compile(
    rf"(?P<name>{grammar.CLOSED_NAME}(?:\s*\.\s*{grammar.CLOSED_NAME})*)(?P<call>\s*\()?",
    re.VERBOSE,
)
_LOGICAL = frozenset("and or like ilike between is similar in = <> != < > <= >= ~".split())
_BEFORE_LISTS = frozenset(("", "in", "array", "values"))
_NAMED = frozenset({"word", "name", "variable"})
_IGNORED = frozenset({"comment", "other"})
_PREFIXES = frozenset("not at interval".split())
_BEFORE_SIGNS = frozenset("select when then else and or not case where on having by in".split())
_SIGNED = frozenset({"open", "comma", "operator"})
"""After these tokens, a `-` is the sign of a number."""
_ARITHMETIC = frozenset("+ - * / %".split())
_BINDING: Mapping[str, int] = {
    "or": 1, "and": 2, "not": 3, "is": 4, "like": 5, "ilike": 5, "similar": 5, "between": 6, "=": 6,
    "<>": 6, "!=": 6, "<": 6, ">": 6, "<=": 6, ">=": 6, "|": 7, "^": 8, "&": 9, "+": 10, "-": 10,
    "*": 11, "/": 11, "%": 11,
}  # fmt: skip
"""The precedence of operators: the parser recurses for each one that binds tighter."""
_BINDS_MOST = 12
_OF_A_QUERY = 1
"""The levels of a SELECT in parentheses in addition to those of the parentheses."""
_CLAUSES = frozenset(
    "select from where group having order limit offset window qualify fetch values set".split()
)
_BRANCHES = frozenset("union intersect except minus".split())
_BRANCHES_OF_CASE = frozenset("when then else".split())
_BEFORE_TABLES = frozenset("lateral only table".split())
_BEFORE_QUERIES = frozenset("select with values".split())
_SETS: Mapping[str, Callable[[int], int]] = {
    "cube": lambda items: 1 << items,
    "rollup": lambda items: items + 1,
    "sets": lambda items: items,
}
_LONG_NAME = 1_000
_WATCHED_EVERY = 16
_WATCHED_BYTES = 1024
_OF_ALL = (
    "joined", "nesting", "logical_chain", "arithmetic_chain", "computing_chain", "entries",
    "arguments", "columns", "name_bytes",
    "grouping_sets", "literal_bytes", "windows",
)  # fmt: skip
"""The sizes that do not grow when a CTE or a view is read."""
Watch = Callable[[Size], None]


def measure(
    sql: str, views: Mapping[str, Size], parameters: Mapping[str, int], watch: Watch
) -> Size:
    """Measure a statement; `parameters` has the size in bytes of each value, by name.

    Calls `watch` as sizes grow; it may raise to stop early.
    """
    return _Measuring(sql, views, parameters, watch).measure_text()


class _Measuring:
    def __init__(
        self, sql: str, views: Mapping[str, Size], parameters: Mapping[str, int], watch: Watch
    ) -> None:
        self._sql = lexer.plain(sql)
        self._views = views
        self._parameters = parameters
        self._watch = watch
        self._frames = [Frame()]
        self._scopes = [StatementScope()]
        self._all = Size()
        """The totals of the text as written, regardless of how often CTEs are read."""
        self._resume = 0

    def measure_text(self) -> Size:
        """Measure the whole text."""
        word, before = "", ""
        for token in lexer.matches(self._sql):
            kind = token.lastgroup or ""
            if kind in _IGNORED or token.start() < self._resume:
                continue
            text = self._sql[token.start() : token.end(kind)]
            if len(text) > _LONG_NAME and kind in _NAMED:
                self._named(text)
            previous, before = before, kind
            frame = self._frames[-1]
            if frame.expects_table and kind in _NAMED and self._table(token.start()):
                word = ""
                continue
            match kind:
                case "word":
                    word = text.lower()
                    self._word(word)
                    continue
                case "operator":
                    if previous in _SIGNED or (previous == "word" and word in _BEFORE_SIGNS):
                        self._prefix(frame)
                    else:
                        self._operator(text)
                case "comma":
                    self._comma(frame)
                case "open":
                    self._open(word)
                case "close":
                    self._close()
                case "name" if frame.with_ == "name":
                    frame.name, frame.with_ = _plain(text), "as"
                case "text" | "prefixed" | "dollar":
                    self._text(len(text))
                case "placeholder":
                    self._text(self._parameters.get(text[1:], 0))
                case "end":
                    self._frames = [Frame()]
            word = ""
        return self._whole()

    def _whole(self) -> Size:
        size = self._scopes[0].size
        for name in _OF_ALL:
            setattr(size, name, getattr(self._all, name))
        size.operators = max(size.operators, self._all.operators)
        size.tables = max(size.tables, self._all.tables)
        self._watch(size)
        return size

    def _word(self, word: str) -> None:
        frame = self._frames[-1]
        if word in _LOGICAL:
            self._operator(word)
        elif word in _PREFIXES:
            self._prefix(frame)
        elif word == "case":
            self._push(Frame(is_case=True))
        elif word == "over":
            self._all.windows += 1
            self._watch(self._all)
        elif word in _BRANCHES_OF_CASE:
            frame.next_expression()
        elif word == "end" and frame.is_case:
            self._pop()
        elif word in _CLAUSES:
            frame.is_query = True
            frame.is_values = word == "values"
            frame.with_ = ""
            frame.in_from = frame.expects_table = word == "from"
            frame.items = 1
            frame.next_expression()
        elif word == "join":
            frame.in_from = frame.expects_table = True
            frame.next_expression()
        elif word in _BRANCHES:
            self._scopes[-1].size.branches += 1
            self._all.branches += 1
            frame.in_from = frame.expects_table = False
            frame.next_expression()
            frame.next_select()
            self._watch(self._all)
        elif word == "with" and not frame.is_query:
            frame.with_ = "name"
        elif frame.with_:
            self._with(frame, word)

    def _with(self, frame: Frame, word: str) -> None:
        match frame.with_, word:
            case "name", "recursive":
                return
            case "name", _:
                frame.name, frame.with_ = word, "as"
            case "as", "as":
                frame.with_ = "body"
            case "body", "not" | "materialized":
                return
            case _:
                frame.with_ = ""

    def _named(self, text: str) -> None:
        self._all.name_bytes = max(self._all.name_bytes, len(text))
        self._watch(self._all)

    def _text(self, count: int) -> None:
        self._scopes[-1].size.text_bytes += count
        self._all.literal_bytes = max(self._all.literal_bytes, count)
        self._all.text_bytes += count
        if count > _WATCHED_BYTES:
            self._watch(self._all)

    def _operator(self, text: str) -> None:
        frame = self._frames[-1]
        self._scopes[-1].size.operators += 1
        self._all.operators += 1
        binding = _BINDING.get(text, _BINDS_MOST)
        while frame.pending and frame.pending[-1] >= binding:
            frame.pending.pop()
        frame.pending.append(binding)
        self._deep(frame)
        if text in _LOGICAL:
            frame.logical += 1
        elif text in _ARITHMETIC:
            frame.arithmetic += 1
        else:
            frame.computing += 1
        self._longest(frame)

    def _longest(self, frame: Frame) -> None:
        size = self._all
        before = size.logical_chain + size.arithmetic_chain + size.computing_chain
        size.logical_chain = max(size.logical_chain, frame.logical)
        size.arithmetic_chain = max(size.arithmetic_chain, frame.arithmetic)
        size.computing_chain = max(size.computing_chain, frame.computing)
        after = size.logical_chain + size.arithmetic_chain + size.computing_chain
        if after // _WATCHED_EVERY > before // _WATCHED_EVERY:
            self._watch(size)

    def _comma(self, frame: Frame) -> None:
        frame.items += 1
        if frame.in_from:
            frame.expects_table = True
        frame.next_expression()
        if frame.is_query and not frame.is_values:
            self._all.columns = max(self._all.columns, frame.items)
        elif frame.with_ == "next":
            frame.with_ = "name"
        elif frame.is_values or frame.before in _BEFORE_LISTS:
            self._all.entries = max(self._all.entries, frame.items)
        else:
            self._all.arguments = max(self._all.arguments, frame.items)
        if not frame.items % _WATCHED_EVERY:
            self._watch(self._all)

    def _open(self, word: str) -> None:
        frame = self._frames[-1]
        inner = Frame(before=word)
        if frame.with_ == "body":
            inner.cte, frame.with_ = frame.name, "next"
            self._scopes.append(StatementScope())
        elif frame.with_ == "next":
            frame.with_ = ""
        elif frame.expects_table:
            # Joins in parentheses, or a subquery, which continues with SELECT.
            inner.in_from = inner.expects_table = inner.is_relation = True
            frame.expects_table = False
        self._push(inner)

    def _push(self, inner: Frame) -> None:
        inner.level = self._level(self._frames[-1]) + 1
        self._frames.append(inner)
        self._deep(inner)

    def _close(self) -> None:
        while self._frames[-1].is_case:
            self._pop()
        if len(self._frames) > 1:
            self._pop()

    def _pop(self) -> None:
        inner = self._frames.pop()
        inner.next_select()
        frame = self._frames[-1]
        if inner.cte:
            size = self._scopes.pop().size
            size.joined = inner.most_joined
            self._scopes[-1].known[inner.cte] = size
        elif inner.is_relation:
            self._join(frame, inner.most_joined)
        if (sets := _SETS.get(inner.before)) is not None:
            frame.sets *= sets(min(inner.items, 64))
            self._all.grouping_sets = max(self._all.grouping_sets, frame.sets)
            self._watch(self._all)
        if not inner.is_query:
            inner.next_expression()
            frame.logical += inner.longest_logical
            frame.arithmetic += inner.longest_arithmetic
            frame.computing += inner.longest_computing
            self._longest(frame)

    def _prefix(self, frame: Frame) -> None:
        """Process a prefix operator, which takes a level for one expression."""
        frame.pending.append(_BINDS_MOST)
        self._deep(frame)

    def _level(self, frame: Frame) -> int:
        return frame.level + len(frame.pending) + _OF_A_QUERY * frame.is_query

    def _deep(self, frame: Frame) -> None:
        level = self._level(frame)
        if level > self._all.nesting:
            self._all.nesting = level
            self._watch(self._all)

    def _table(self, start: int) -> bool:
        """Count the table that is named at this position; return whether there is one."""
        match = _TABLE.match(self._sql, start)
        frame = self._frames[-1]
        name = match["name"].lower() if match else ""
        if match is None or name in _BEFORE_TABLES:
            return False
        frame.expects_table = False
        if name in _BEFORE_QUERIES:
            frame.in_from = False
            return False
        scope = self._scopes[-1]
        size = None if match["call"] else self._known(match["name"])
        if size is None:
            scope.size.tables += 1
            self._all.tables += 1
        else:
            scope.size.read(size)
        self._join(frame, size.joined if size else 1)
        self._resume = match.end("name")
        self._watch(scope.size)
        return True

    def _join(self, frame: Frame, tables: int) -> None:
        frame.joined += tables
        if frame.joined > self._all.joined:
            self._all.joined = frame.joined
            self._watch(self._all)

    def _known(self, name: str) -> Size | None:
        parts = [_plain(part) for part in _NAME.findall(name)]
        if len(parts) == 1:
            for scope in reversed(self._scopes):
                if parts[0] in scope.known:
                    return scope.known[parts[0]]
        if not self._views:
            return None
        dotted = ".".join(parts).removeprefix("caraway.").removeprefix("public.")
        return self._views.get(dotted)


def _plain(name: str) -> str:
    if name[0] in '"`':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name.lower()

"""Finds the connection of a GraphQL query whose pages are read, and writes a cursor into it.

A connection is a field with `pageInfo { hasNextPage endCursor }` below it. Only names, punctuation
and strings are read: the server judges the rest.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from caraway_core.errors import DatasetError

_TOKEN = re.compile(
    r'(?P<skip>[\s,\ufeff]+|#[^\n]*)|(?P<text>"{3}(?:[^"\\]|\\.|"(?!"{2}))*"{3}|"(?:[^"\\\n]|\\.)*")'
    r"|(?P<name>[_A-Za-z][_0-9A-Za-z]*)|(?P<spread>\.\.\.)|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class PagedList:
    """A list with pages: the names of the answer that lead to it, and the place of its cursor.

    `start` and `end` are the place of the argument `after`, or where it is added; `opens` and
    `closes` are written around it. If the query has a `variable` for it, that gets the cursor.
    """

    path: tuple[str, ...]
    start: int
    end: int
    opens: str = ""
    closes: str = ""
    variable: str = ""

    def pointer(self, *names: str) -> str:
        """Return the JSON pointer to the connection in an answer, or to a field below it."""
        steps = ("data", *self.path, *names)
        return "".join(f"/{each}" for each in steps)

    def at(self, query: str, cursor: str) -> tuple[str, Mapping[str, str]]:
        """Return the query for the page after a cursor, and its variables."""
        if self.variable:
            return query, {self.variable: cursor}
        text = f"{self.opens}after: {json.dumps(cursor)}{self.closes}"
        return f"{query[: self.start]}{text}{query[self.end :]}", {}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Field:
    """A field that is being read: its name in the answer, and its arguments."""

    name: str
    end: int
    arguments: tuple[int, int] | None = None
    after: tuple[int, int] | None = None
    variable: str = ""


def find(query: str, pointer: str | None) -> PagedList | None:
    """Return the connection of a query with the rows at a pointer, or its only one.

    None: the query has none, so that its answer is the only page.

    Raises:
        DatasetError: it is not a query, or none of its connections has the rows.
    """
    paged_lists = list(_Reader(query).connections())
    if pointer is not None:
        of_rows = [each for each in paged_lists if f"{pointer}/".startswith(f"{each.pointer()}/")]
        if paged_lists and not of_rows:
            raise _invalid("has `pageInfo` in another list than that of json_pointer")
        return max(of_rows, key=lambda each: len(each.path), default=None)
    if len(paged_lists) > 1:
        raise _invalid("has `pageInfo` in several lists; set json_pointer to the rows of one")
    return paged_lists[0] if paged_lists else None


def _invalid(fault: str) -> DatasetError:
    return DatasetError("invalid", f"params.graphql_query {fault}")


class _Reader:
    def __init__(self, query: str) -> None:
        self._tokens = [
            _Token(str(each.lastgroup), each[0], each.start(), each.end())
            for each in _TOKEN.finditer(query)
            if each.lastgroup != "skip"
        ]
        self._at = 0

    def connections(self) -> Iterator[PagedList]:
        """Yield the connections of the first operation; fragments are not followed."""
        while self._is_left() and self._text() != "{":
            if self._text() in ("mutation", "subscription"):
                raise _invalid(f"is a {self._text()}; a dataset only reads")
            self._skip_group() if self._text() in ("(", "[") else self._step()
        if self._is_left():
            yield from self._selection(())

    def _selection(self, path: Sequence[_Field]) -> Iterator[PagedList]:
        self._step()
        while self._is_left() and self._text() != "}":
            if self._tokens[self._at].kind == "spread":
                self._step()
                # `on Type`, the name of a fragment, or directives before a selection.
                while self._is_left() and self._tokens[self._at].kind == "name":
                    if self._step() != "on":
                        break
                self._skip_directives()
            elif self._tokens[self._at].kind == "name":
                field = self._field()
                if field.name == "pageInfo" and path:
                    yield _connection(path)
                if self._is_left() and self._text() == "{":
                    yield from self._selection([*path, field])
            elif self._text() == "{":
                yield from self._selection(path)
            elif self._text() in ("(", "["):
                self._skip_group()
            else:
                self._step()
        self._step()

    def _field(self) -> _Field:
        token = self._tokens[self._at]
        self._step()
        field = _Field(token.text, token.end)
        if self._is_left() and self._text() == ":":
            self._step()
            field.end = self._tokens[self._at].end if self._is_left() else field.end
            self._step()
        if self._is_left() and self._text() == "(":
            self._arguments(field)
        self._skip_directives()
        return field

    def _skip_directives(self) -> None:
        while self._is_left() and self._text() == "@":
            self._step()
            self._step()
            if self._is_left() and self._text() == "(":
                self._skip_group()

    def _arguments(self, field: _Field) -> None:
        first = self._tokens[self._at]
        depth = 0
        while self._is_left():
            token = self._tokens[self._at]
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            self._step()
            if depth == 0:
                field.arguments = (first.end, token.start)
                return
            is_name = depth == 1 and token.kind == "name" and self._is_left()
            if is_name and token.text == "after" and self._text() == ":":
                self._step()
                self._after(field, token.start)

    def _after(self, field: _Field, start: int) -> None:
        """Read the value of `after`: a text, `null` or a variable."""
        is_variable = self._is_left() and self._text() == "$"
        if is_variable:
            self._step()
        if self._is_left():
            field.after = (start, self._tokens[self._at].end)
            field.variable = self._text() if is_variable else ""
            self._step()

    def _skip_group(self) -> None:
        depth = 0
        while self._is_left():
            depth += (self._text() in ("(", "[", "{")) - (self._text() in (")", "]", "}"))
            self._step()
            if depth == 0:
                return

    def _is_left(self) -> bool:
        return self._at < len(self._tokens)

    def _text(self) -> str:
        return self._tokens[self._at].text

    def _step(self) -> str:
        text = self._text() if self._is_left() else ""
        self._at += 1
        return text


def _connection(path: Sequence[_Field]) -> PagedList:
    field, names = path[-1], tuple(each.name for each in path)
    if field.after is not None:
        return PagedList(names, *field.after, variable=field.variable)
    if field.arguments is not None:
        return PagedList(names, field.arguments[0], field.arguments[0], "", ", ")
    return PagedList(names, field.end, field.end, "(", ")")

"""Collects the functions of a manifest, and puts their bodies into its other texts."""

from collections.abc import Callable, Iterator, Mapping

from caraway_core.errors import InvalidQueryError, Problem
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import function_rules
from caraway_core.manifest.texts import names
from caraway_core.sqltext import function_bodies
from caraway_core.sqltext.expanding import Expander, FunctionBodyError
from caraway_core.sqltext.sql_functions import SqlFunction

_NONE = Expander()


class FunctionReferences:
    """The functions that were found so far, and where they are declared."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[SqlFunction, Document]] = {}
        self.expander = _NONE
        self.is_on = True

    @property
    def functions(self) -> tuple[SqlFunction, ...]:
        """The functions in the order of the manifest."""
        return tuple(self.expander.functions.values())

    def add(self, made: SqlFunction, found: Document) -> Iterator[Problem]:
        """Take a function; yield a problem if its name is taken."""
        if (first := self._found.get(made.name)) is not None:
            place = f"{first[1].path}:{first[1].line(('name',))}"
            message = f"the name '{made.name}' is taken: it is declared at {place}"
            yield found.problem(("name",), message)
            return
        self._found[made.name] = made, found

    def problems(self, tables: Mapping[str, str], tools: Mapping[str, object]) -> Iterator[Problem]:
        """Yield the problems of names and bodies, given the places of tables and the tools."""
        for function, document in self._found.values():
            if (place := tables.get(names.identity(function.name))) is not None:
                message = f"the name '{function.name}' is taken: a table is declared at {place}"
                yield document.problem(("name",), message)
            if function.as_tool and function.name in tools:
                message = (
                    f"the name '{function.name}' is taken by a tool; choose another, or write "
                )
                yield document.problem(("name",), message + "`as_tool: false`")
            if problem := function_rules.false_volatility(function):
                yield document.problem(("volatility",), problem)
        functions = dict(self._found) if self.is_on else {}
        while functions:
            try:
                self.expander = Expander(each for each, _ in functions.values())
                return
            except FunctionBodyError as exc:
                _, document = functions.pop(exc.name)
                key = next(each for each in ("body", "body_ref", "sql") if each in document.value)
                yield document.problem((key,), exc.message)
                # Those that call it would fail for the same reason.
                functions = {
                    name: each
                    for name, each in functions.items()
                    if not function_bodies.called(each[0].body, {exc.name})
                }

    def expanded(self, sql: str, problem: Callable[[str], None]) -> str:
        """Return a text of the manifest without calls; passes on what is wrong with them."""
        try:
            return self.expander.expanded(sql).sql
        except InvalidQueryError as exc:
            problem(exc.message)
            return sql

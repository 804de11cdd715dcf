"""Finds the conditions that apply to the rows of a search, and writes them as SQL.

A condition on columns of the table is a pre-filter: only rows that pass are ranked. Which ones
these are is what the optimizer moves down to the table, without subqueries turned into joins.
"""

import functools
import operator
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datafusion import LogicalPlan, SessionConfig, SessionContext
from datafusion.expr import Expr
from datafusion.unparser import Dialect, Unparser

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.sqltext import lexer
from caraway_core.sqltext.lexer import SqlToken
from caraway_engine.statements import decorrelation, plan_facts, plan_nodes
from caraway_engine.statements.plan_nodes import SUBQUERIES, HiddenError
from caraway_engine.table_functions import qualifiers, stand_ins, wording

_PUSHING = frozenset({"push_down_filter", "simplify_expressions"})
_AFTER = "logical_plan after "
_COMPARE = "compare its columns with constants"
_MOST_TRIED = 100
"""The most conditions that are tried one by one, a few milliseconds for each."""
_CHANGING = plan_facts.VOLATILE - {"now", "current_date", "current_time"}
"""Functions that give each row another value; the others are constants within a statement."""


@dataclass(frozen=True, slots=True)
class PreFilter:
    """The conditions of a search; `is_whole` means that no others apply to its rows directly."""

    where: str | None
    is_whole: bool


Replan = Callable[[str], Any]
"""Plans a statement over the same tables."""


@dataclass(frozen=True, slots=True)
class FilteredTable:
    """A table that stands for a search, the table that is searched, and the name of its score."""

    name: TableName
    searched: TableName
    score: str | None


def found(
    plan: Any,
    tables: Mapping[TableName, FilteredTable],
    counts: Mapping[TableName, int],
    replan: Replan,
) -> dict[TableName, PreFilter]:
    """Return the pre-filter of each table as a predicate in SQL over the searched table.

    Where a statement reads a search more than once, conditions count that apply to every read.
    `counts` says how often it reads each table, also where the optimizer does not see it.

    Raises:
        InvalidQueryError: a condition cannot be written as SQL.
    """
    reads: dict[TableName, list[tuple[str | None, ...]]] = {name: [] for name in tables}
    for decorrelates in (False, True):
        visible = {name: list(_reads(plan, name, decorrelates)) for name in tables}
        for name, each in visible.items():
            # Reads inside of subqueries are seen only once these are joins.
            if len(each) > len(reads[name]) or not reads[name]:
                writer = _Writer(tables[name], replan)
                reads[name] = list(map(writer.written, each))
        if all(counts.get(name, 0) <= len(each) for name, each in reads.items()):
            break
    return {name: _common(each, counts.get(name, 0)) for name, each in reads.items()}


def _common(reads: list[tuple[str | None, ...]], count: int) -> PreFilter:
    """Return the conditions that all reads share; None among them are about other rows."""
    if not reads or count > len(reads):
        return PreFilter(None, is_whole=False)
    first, *others = reads
    kept = [each for each in dict.fromkeys(first) if all(each in other for other in others)]
    written = [each for each in kept if each is not None]
    return PreFilter(" AND ".join(written) or None, is_whole=not others and None not in first)


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of a table: the conditions directly above it, and the names given to its rows."""

    conditions: tuple[Any, ...]
    aliases: frozenset[str]


def _reads(plan: object, name: TableName, decorrelates: bool = False) -> Iterator[_Read]:
    """Yield the reads of a table, with conditions moved down to them."""
    context = _moving(decorrelates)
    raw = getattr(plan, "_raw_plan", plan)
    moved = context.create_dataframe_from_logical_plan(LogicalPlan(raw)).optimized_logical_plan()
    waiting: list[tuple[Any, _Read]] = [(moved._raw_plan, _NO_READ)]
    while waiting:
        each, above = waiting.pop()
        node = plan_nodes.typed(each)
        match node.kind:
            case "TableScan" if plan_facts.table_name(*node.variant.fqn()) == name:
                yield replace(above, conditions=(*above.conditions, *node.variant.filters()))
                continue
            case "SubqueryAlias":
                alias = node.variant.alias().rpartition(".")[2]
                below = _Read((), above.aliases | {alias})
            case "Filter":
                below = _Read(tuple(_split(node.variant.predicate())), above.aliases)
            case _:
                below = _NO_READ
        waiting += [(part, below) for part in each.inputs()]


_NO_READ = _Read((), frozenset())


def _split(expression: Any) -> list[object]:
    """Return the conditions that AND joins."""
    split: list[Any] = []
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        is_and = each.variant_name() == "BinaryExpr" and each.to_variant().op() == "AND"
        if is_and:
            waiting += reversed(plan_nodes.chained(each))
        else:
            split.append(each)
    return split


class _Writer:
    """Writes conditions on one table that stands for a search."""

    def __init__(self, table: FilteredTable, replan: Replan) -> None:
        self._name = table.name
        self._score = table.score
        self._bare = table.name.rpartition(".")[2]
        self._searched = table.searched.rpartition(".")[2]
        self._replan = replan
        self._own = quoted(table.name)
        self._target = qualifiers.quoted(self._searched)
        self._read: Any = None
        self._mark = f"@{secrets.token_hex(8)}@"
        self._tried = 0

    def written(self, read: _Read) -> tuple[str | None, ...]:
        """Write the conditions of a read; None stands for one that is about other rows, too.

        Raises:
            InvalidQueryError: one cannot be written.
        """
        kinds = [self._has_subquery(each) for each in read.conditions]
        plain = [each for each, kind in zip(read.conditions, kinds, strict=True) if kind is False]
        short = iter(self._all_worded(plain) or ())
        texts: list[str | None] = []
        for condition, kind in zip(read.conditions, kinds, strict=True):
            if kind is None:
                texts.append(None)
            elif kind:
                text = self._unparsed(condition, read.aliases)
                advice = f"FROM {self._searched} AS other"
                advice = f"if its subquery reads that table, name it once there, as in {advice}"
                texts.append(self._checked(text, advice))
            else:
                text = next(short, None)
                if text is None:
                    text = self._checked(self._worded(condition), _COMPARE)
                texts.append(text)
        return tuple(None if each is _OTHERS else each for each in texts)

    def _checked(self, text: str | None, advice: str) -> str:
        self._tried += 1
        if text is None or self._tried > _MOST_TRIED:
            raise InvalidQueryError(
                f"a condition on the rows of {self._bare} cannot be sent to the search; {advice}, "
                "or put the search into a subquery with LIMIT, so that the condition applies to "
                "the rows that were found"
            )
        return text

    def _all_worded(self, conditions: list[object]) -> list[str] | None:
        """Write conditions in short; None if some of them mean something else then."""
        try:
            texts = [self._short(each, is_short=True) for each in conditions]
        except HiddenError:
            return None
        if not conditions or not self._mean(self._over_own(" AND ".join(texts)), conditions):
            return None
        return [each.replace(self._mark, self._target) for each in texts]

    def _short(self, condition: object, *, is_short: bool) -> str:
        return wording.worded(
            condition, _qualifying(self._mark), wording.type_in(self._rows), is_short=is_short
        )

    def _over_own(self, text: str) -> str:
        return text.replace(self._mark, qualifiers.quoted(self._bare))

    def _has_subquery(self, condition: object) -> bool | None:
        """Return whether there is a subquery; None if the condition is not about the table."""
        found = False
        try:
            for part in plan_nodes.inside(condition):
                if part.kind in SUBQUERIES:
                    found = True
                elif part.kind == "Column":
                    if part.expression.to_variant().name() == self._score:
                        return None
                elif part.kind.startswith("Outer"):
                    return None
                elif part.kind == "ScalarFunction":
                    if part.expression.rex_call_operator() in _CHANGING:
                        return None
        except HiddenError:
            return True
        return found

    def _worded(self, condition: object) -> str | None:
        """Write a condition without a subquery; None if it cannot be written."""
        try:
            text = self._short(condition, is_short=False)
        except HiddenError:
            return self._unparsed(condition, frozenset())
        is_same = self._mean(self._over_own(text), [condition])
        return text.replace(self._mark, self._target) if is_same else None

    def _unparsed(self, condition: object, aliases: frozenset[str]) -> str | None:
        """Write a condition as the engine does; None if it cannot be written."""
        try:
            plan = self._rows.filter(Expr(condition)).logical_plan()
            text = _condition(Unparser(Dialect.default()).plan_to_sql(plan))
        except Exception:  # noqa: BLE001 -- the engine refuses what it cannot write
            return None
        if any(map(_is_of_search, lexer.significant(text))):
            return _OTHERS
        # Where the optimizer moved conditions below an alias, the text names the table instead.
        attempts = dict.fromkeys((text, qualifiers.aliased(text)))
        written = (self._meant(each, condition, aliases) for each in attempts)
        return next(filter(None, written), None)

    def _meant(self, text: str, condition: object, aliases: frozenset[str]) -> str | None:
        """Write the columns of the searched table in a text; None if it means something else."""
        tokens = list(lexer.significant(text))
        names = [qualifiers.name_of(each) for each in tokens]
        owned = qualifiers.owned(names, aliases | {self._bare})
        if owned is None or self._is_ambiguous(tokens, names, owned):
            return None
        (alias,) = {names[place] for place in owned} & aliases or {None}
        own = f"{self._own} AS {qualifiers.quoted(alias)}" if alias else self._own
        texts = [
            qualifiers.requalified(text, [tokens[place] for place in owned], table)
            for table in (qualifiers.quoted(alias or self._bare), self._target)
        ]
        return texts[1] if self._mean(texts[0], [condition], own) else None

    def _is_ambiguous(
        self, tokens: list[SqlToken], names: list[str | None], owned: list[int]
    ) -> bool:
        """Return whether a subquery that compares with its rows has a table of the same name."""
        if not any(qualifiers.is_in_subquery(tokens[:place]) for place in owned):
            return False
        others = (place for place, name in enumerate(names) if name == self._searched)
        return not all(
            place in owned or qualifiers.is_renamed(tokens, names, place) for place in others
        )

    def _mean(self, text: str, conditions: list[object], table: str | None = None) -> bool:
        """Return whether a text over a table is planned as the same conditions."""
        rows, name = self._rows, self._name
        try:
            sql = f"SELECT * FROM {table or self._own} WHERE {text}"
            again = self._replan(sql).logical_plan()
            expected = _filtered(rows, conditions)
            (one,), (other,) = list(_reads(again, name)), list(_reads(expected, name))
        except Exception:  # noqa: BLE001 -- the engine refuses what it does not understand
            return False
        same = _filtered(rows, one.conditions), _filtered(rows, other.conditions)
        return bool(same[0] == same[1])

    @property
    def _rows(self) -> Any:
        if self._read is None:
            self._read = self._replan(f"SELECT * FROM {self._own}")
        return self._read


_OTHERS = "others"
"""Stands for a condition that reads other searches."""


def _is_of_search(token: SqlToken) -> bool:
    name = qualifiers.name_of(token)
    return name is not None and stand_ins.is_stand_in(name)


def _filtered(rows: Any, conditions: Sequence[object]) -> object:
    """Return the plan of rows that pass all conditions."""
    frame = decorrelation.decorrelating().create_dataframe_from_logical_plan(rows.logical_plan())
    joined = functools.reduce(operator.and_, map(Expr, conditions))
    return frame.filter(joined).logical_plan()._raw_plan


def _condition(sql: str) -> str:
    """Return what follows the first WHERE of a text."""
    words = (each for each in lexer.significant(sql) if each.kind == "word")
    return sql[next(each.end for each in words if each.text.upper() == "WHERE") :].strip()


def _qualifying(table: str) -> Callable[[str], str]:
    return lambda column: f"{table}.{qualifiers.quoted(column)}"


def quoted(table: TableName) -> str:
    """Return the quoted name of a table for SQL."""
    parts = table.split(".")
    return ".".join(map(qualifiers.quoted, parts if len(parts) > 1 else ("public", *parts)))


@functools.cache
def _moving(decorrelates: bool) -> SessionContext:
    """Return a context whose optimizer only moves conditions down."""
    config = (
        SessionConfig()
        .set("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", "false")
        .set("datafusion.optimizer.max_passes", "3" if decorrelates else "1")
    )
    context = SessionContext(config)
    kept = _PUSHING | decorrelation.RULES if decorrelates else _PUSHING
    for step in context.sql("EXPLAIN VERBOSE SELECT 1").to_pydict()["plan_type"]:
        rule = step.removeprefix(_AFTER)
        if rule != step and rule not in kept:
            context.remove_optimizer_rule(rule)
    return context

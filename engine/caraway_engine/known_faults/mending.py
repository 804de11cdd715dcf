"""Detects known faults of the engine in a statement, and rewrites it to avoid them."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from datafusion import SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import comments
from caraway_engine.known_faults import (
    arithmetic,
    chance,
    combined,
    constant_columns,
    constant_keys,
    constants,
    embedded,
    fields,
    finer_moments,
    float_forms,
    floats,
    free_frames,
    grouping_parts,
    joining,
    lengths,
    merged_lists,
    misread_orders,
    moments,
    null_keys,
    ordering,
    overflow,
    patterns,
    percentiles,
    pulled_up,
    quantified,
    random_keys,
    recursion,
    repeated,
    repeated_keys,
    right_joins,
    row_values,
    rows_of_nothing,
    scopes,
    sort_keys,
    subqueries,
    sums,
    syntax,
    values_under_null,
    windows,
    xors,
)
from caraway_engine.known_faults.constants import AssumedConstants
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.relations import NONE_DOUBTED, DoubtedRelations
from caraway_engine.known_faults.schemas import KnownSchemas
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_NOTHING: Mapping[str, object] = MappingProxyType({})
# The `*` of `SELECT *` and `count(*)` is not arithmetic.
_COMPUTES = r"[-+/%]|[\w)\]\"']\s*\*(?!\s*(?:,|$|from\b))"
_WORDS = (
    "sum", "avg", "mean", "min", "max", "over", "exists",
    "using", "natural", "distinct", "rand", "random", "uuid", "offset", "timestamptz", "zone",
    "timestamp", "time", "interval", "embed", "right", "full", "nullif", "case", "greatest",
    "least", "pow", "power", "round", "acos", "asin", "acosh", "atanh",
)  # fmt: skip
_CALL = re.compile(r"(?:_value|_agg)\s*\(", re.IGNORECASE)
_ORDER = re.compile(r"\border\b", re.IGNORECASE)
_MAY_APPLY = re.compile(rf"{_COMPUTES}|\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_CHOOSES = re.compile(r"\b(?:where|on|having|limit|fetch)\b", re.IGNORECASE)
MAKES_NULLS = re.compile(r"\b(?:left|right|full|rollup|cube|grouping)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"\b(?:and|or|not|union|case)\b|[-+*/%|(]", re.IGNORECASE)
_NUMBERS = r"\d{1,18}(?:\.\d{1,18})?"
_TEXTS = r"'[^'\\]*'"
_LONG_LIST = re.compile(
    rf"(?P<begin>\bin\s*\(\s*)(?:(?P<number>{_NUMBERS})(?:\s*,\s*{_NUMBERS}){{63,}}|"
    rf"(?P<text>{_TEXTS})(?:\s*,\s*{_TEXTS}){{63,}})\s*\)",
    re.IGNORECASE,
)
_ZERO = re.compile(r"[(,]\s*0+(?:\.0+)?\s*[,)]")
_MOST_OPERATORS = 1500
"""Syntax trees are walked recursively; larger statements are left unchanged."""


@dataclass(frozen=True, slots=True)
class RewrittenStatement:
    """A rewritten statement with the same meaning.

    `is_needed` means that the original form gives wrong results. Otherwise the new form only adds
    guards against errors that may not occur.
    """

    sql: str
    is_needed: bool


_NO_CONSTANTS = AssumedConstants()
_NO_COLUMNS = pa.schema([])
Guard = Callable[[SelectScope, Types], bool]
_GUARDS: tuple[Guard, ...] = (overflow.guard, sums.keep_types)
_REMEDIES: tuple[Guard, ...] = (
    embedded.mend,
    quantified.mend,
    subqueries.mend,
    moments.mend,
    joining.mend_using,
    float_forms.mend,
    floats.mend_extremes,
    floats.mend_zeros,
    floats.mend_moving,
)


def mend(
    context: SessionContext,
    sql: str,
    parameters: Mapping[str, object] = _NOTHING,
    doubted: DoubtedRelations = NONE_DOUBTED,
    known: KnownSchemas | None = None,
    believed: AssumedConstants = _NO_CONSTANTS,
    columns: pa.Schema = _NO_COLUMNS,
    *,
    is_view: bool = False,
    swaps_full: bool = False,
) -> RewrittenStatement | None:
    """Rewrite a statement to avoid known faults, or return None if it is already safe.

    `columns` are its output columns, whose names do not change. `swaps_full` says that the
    optimizer makes a RIGHT join of one of its FULL joins.

    Raises:
        InvalidQueryError: no safe form is known.
    """
    uncommented = comments.left_out(sql)
    words = _LONG_LIST.sub(_shortened, uncommented)
    lower = words.lower()
    may_apply = (
        _MAY_APPLY.search(words)
        or _has_sorted_call(words)
        or merged_lists.may_apply(words, is_view=is_view)
        or rows_of_nothing.may_apply(words, is_view=is_view)
        or constant_columns.may_apply(lower)
        or (doubted.unmeasured and _CHOOSES.search(words))
        or (doubted.unmasked and fields.may_apply(words))
        or believed
        or (is_view and MAKES_NULLS.search(words))
        or sort_keys.may_be_floats(words, columns)
        or pulled_up.may_apply(lower)
        or patterns.may_apply(lower)
        or xors.may_apply(words)
        or misread_orders.may_order_aggregates(lower)
        or finer_moments.may_apply(words)
        or recursion.may_apply(lower)
        or row_values.may_apply(lower)
        or percentiles.may_apply(lower)
        or random_keys.may_apply(lower)
    )
    if not may_apply or is_large(words):
        return None
    types = Types(context, parameters, known)

    def mended(statement: Tree) -> RewrittenStatement | None:
        return _mended(
            statement,
            lower,
            types,
            doubted,
            believed,
            columns.names,
            is_view,
            swaps_full,
        )

    # Parsing thousands of constants takes longer than all else, and hardly any needs a remedy.
    with suppress(InvalidQueryError):
        short = words if uncommented is sql else _LONG_LIST.sub(_shortened, sql)
        if short != sql and (statement := _parsed(short)) is not None and not mended(statement):
            return None
    statement = _parsed(sql)
    return None if statement is None else mended(statement)


def is_large(words: str) -> bool:
    """Return whether a statement is too large for its tree to be walked."""
    return len(_OPERATORS.findall(words)) > _MOST_OPERATORS


def _has_sorted_call(words: str) -> bool:
    # One pattern would look at the rest of the text for each call.
    found = _CALL.search(words)
    return found is not None and _ORDER.search(words, found.end()) is not None


def _parsed(sql: str) -> Tree | None:
    """Parse one statement; None if the parser does not support it."""
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    return statements[0] if len(statements) == 1 else None


def _shortened(match: re.Match[str]) -> str:
    """Leave a constant in a list; zero is kept, because a remedy looks for it."""
    zero = ", 0" if match["number"] and _ZERO.search(match[0]) else ""
    return f"{match['begin']}{match['number'] or match['text']}{zero})"


def _mended(
    statement: Tree,
    words: str,
    types: Types,
    doubted: DoubtedRelations,
    believed: AssumedConstants,
    columns: Sequence[str],
    is_view: bool,
    swaps_full: bool,
) -> RewrittenStatement | None:
    # Each remedy walks the whole statement, but most statements lack these words.
    is_needed, is_guarded = False, False
    if chance.may_apply(words):
        repeated.check(statement)
        is_needed |= chance.mend(statement, types)
    if row_values.may_apply(words):
        is_needed |= row_values.mend(statement)
    if "except" in words or "intersect" in words:
        is_needed |= combined.mend(statement, types)
    if "offset" in words or "limit" in words:
        is_needed |= ordering.mend(statement, is_view=is_view)
    if recursion.may_apply(words):
        is_needed |= recursion.mend(statement, types)
    is_needed |= merged_lists.mend(statement, words, is_view=is_view)
    if rows_of_nothing.may_apply(words, is_view=is_view):
        is_needed |= rows_of_nothing.mend(statement, types, is_view=is_view)
    is_measured = not _reads(statement, doubted.unmeasured)
    is_masked = not (fields.may_apply(words) and _reads(statement, doubted.unmasked))
    has_lengths = "interval" in words
    is_query = syntax.kind(statement) not in ("Update", "Delete")
    has_right_joins = is_query and ("right" in words or swaps_full)
    if has_lengths:
        is_needed |= lengths.mend_sets(statement, types)
    has_patterns = patterns.may_apply(words)
    may_pull_up = "over" in words or pulled_up.may_apply(words)
    has_fractions = finer_moments.may_apply(words)
    has_order = "order" in words
    compares_columns = constant_columns.may_apply(words)
    keeps_values = values_under_null.may_apply(words, is_view=is_view) and (
        is_view or values_under_null.reads(words, statement)
    )
    has_bits = arithmetic.may_negate_bits(words)
    if has_order:
        is_needed |= float_forms.mend_sets(statement, types)
    found = list(scopes.scopes(statement))
    has_right_joins &= any(map(right_joins.has_conditions, found))
    # Inner ones first, because remedies of outer ones copy them.
    for scope in reversed(found):
        if not is_masked:
            is_needed |= fields.spread(scope, types)
        names = _Names(scope, types, columns if scope.is_top else ())
        if not is_masked:
            is_needed |= fields.mend(scope, types)
        is_needed |= windows.inline(scope)
        if xors.may_apply(words):
            is_needed |= xors.mend(scope)
        if has_patterns:
            is_needed |= patterns.mend(scope)
        if may_pull_up:
            pulled_up.check(scope, types)
        if "over" in words or "time" in words:
            is_needed |= misread_orders.mend_sorted(scope, types)
        if "over" in words:
            is_needed |= free_frames.mend(scope, types)
        if "round" in words:
            is_needed |= arithmetic.mend_rounding(scope, types)
        if has_fractions:
            is_needed |= finer_moments.mend(scope, types)
        if has_bits:
            is_needed |= arithmetic.mend_bits(scope)
        if has_order:
            is_needed |= misread_orders.mend_aggregates(scope)
        if has_order or "distinct" in words:
            is_needed |= repeated_keys.mend(scope)
        types.types_of(
            scope,
            [
                *overflow.candidates(scope),
                *floats.candidates(scope),
                *float_forms.candidates(scope),
                *(lengths.candidates(scope) if has_lengths else ()),
                *(values_under_null.candidates(scope) if keeps_values else ()),
            ],
        )
        if keeps_values:
            is_needed |= values_under_null.mend(scope, types)
        if has_lengths:
            is_needed |= lengths.mend(scope, types, names.name_of)
        is_needed |= _applied(_REMEDIES, scope, types)
        if random_keys.may_apply(words):
            is_needed |= random_keys.mend(scope, types)
        if percentiles.may_apply(words):
            is_needed |= percentiles.mend(scope, types)
        if has_right_joins:
            is_needed |= right_joins.mend(scope, types, also_full=swaps_full)
        if compares_columns and is_query:
            is_needed |= constant_columns.turn(scope)
            is_needed |= constant_columns.mend(scope, types)
        is_needed |= constant_keys.mend(scope, types, believed)
        is_needed |= constants.mend(scope, types, believed, is_view)
        if not is_measured:
            is_needed |= floats.hide_from_statistics(scope, types)
        if has_order:
            is_needed |= float_forms.mend_sort_keys(scope, types, names.name_of)
        if is_query and "distinct" in words:
            is_needed |= null_keys.mend(scope, types)
        is_guarded |= _applied(_GUARDS, scope, types)
        names.keep()
    if not is_needed and not is_guarded:
        return None
    text = syntax.restored(statement)
    return RewrittenStatement(grouping_parts.closed(text) or text, is_needed)


def _applied(guards: Sequence[Guard], scope: SelectScope, types: Types) -> bool:
    results = [guard(scope, types) for guard in guards]
    return any(results)


def _reads(statement: Tree, relations: frozenset[str]) -> bool:
    return bool(relations) and any(_names(each, relations) for each in syntax.everything(statement))


def _names(tree: Tree, relations: frozenset[str]) -> bool:
    """Return whether a part of FROM names one of these relations."""
    if "Table" not in tree or not isinstance(tree["Table"], dict):
        return False
    last = tree["Table"]["name"][-1]
    return "Identifier" in last and syntax.spelled(last["Identifier"]) in relations


class _Names:
    """Keeps the names of columns whose expressions are rewritten."""

    def __init__(self, scope: SelectScope, types: Types, columns: Sequence[str]) -> None:
        self._scope = scope
        self._types = types
        items = scope.select["projection"]
        # A `*` stands for several columns.
        known = columns if len(columns) == len(items) else [None] * len(items)
        self._before = [
            (each, syntax.copied(each), name)
            for each, name in zip(items, known, strict=True)
            if "UnnamedExpr" in each
        ]

    def name_of(self, item: Tree) -> str | None:
        """Return the name that the engine gave to an item before it was rewritten."""
        for each, before, known in self._before:
            if each is item:
                return known or self._types.name(self._scope, before["UnnamedExpr"])
        return None

    def keep(self) -> None:
        """Add aliases to the columns that were rewritten."""
        for item, before, _ in self._before:
            if item == before or "UnnamedExpr" not in item:
                continue
            if (name := self.name_of(item)) is not None:
                syntax.replace(item, scopes.named(item["UnnamedExpr"], name))

"""Plans statements in a form in which the engine's known faults do not show."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from datafusion import DataFrame, LogicalPlan, SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import (
    casts,
    clock_times,
    constants,
    distinct_from,
    embedded,
    empty_sides,
    free_frames,
    grouping_parts,
    hidden_names,
    leaves,
    listed,
    merged,
)
from caraway_engine.known_faults.constants import AssumedConstants
from caraway_engine.known_faults.expression_types import Types, final_schema
from caraway_engine.known_faults.mending import MAKES_NULLS, RewrittenStatement, is_large, mend
from caraway_engine.known_faults.names import is_lost
from caraway_engine.known_faults.relations import NONE_DOUBTED, DoubtedRelations
from caraway_engine.known_faults.schemas import KnownSchemas
from caraway_engine.statements import bounds

logger = logging.getLogger(__name__)

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A plan, the text that it was made from, and the optimized plan if it was computed."""

    sql: str
    dataframe: DataFrame
    optimized: LogicalPlan | None = None


def planned(
    context: SessionContext,
    sql: str,
    plan: Callable[[str], DataFrame],
    parameters: Mapping[str, object] = _NOTHING,
    doubted: DoubtedRelations = NONE_DOUBTED,
    known: KnownSchemas | None = None,
    *,
    is_view: bool = False,
) -> PlannedStatement:
    """Plan a statement, rewritten where necessary to avoid the engine's known faults.

    `known` has schemas found earlier for the same tables. For a view, other statements will read
    it.

    Raises:
        InvalidQueryError: no safe form is known, or the statement is nested too deeply for it.
        Exception: the engine cannot plan the statement as it is.
    """
    sql = grouping_parts.closed(sql) or sql
    sql = distinct_from.regrouped(sql) or sql
    types = Types(context, parameters, known)
    sql = clock_times.aligned(sql, types) or sql
    sql = listed.moved(sql, types) or sql
    sql = empty_sides.named(sql, types) or sql
    try:
        dataframe = plan(sql)
    except Exception as exc:
        made = merged.qualified(sql, types) if merged.is_error(exc) else None
        if casts.is_error(exc):
            named = hidden_names.apart(sql)
            made = casts.apart(named or sql) or named
        if made is None and not is_large(sql):
            made = embedded.of_lists(sql, types) or listed.called(sql, types)
        if made is None:
            raise
        sql, dataframe = made, plan(made)
    optimized = None
    believed, swaps_full = AssumedConstants(), False
    if MAKES_NULLS.search(sql):
        if regrouped := free_frames.regrouped(sql, types):
            sql, dataframe = regrouped, plan(regrouped)
        optimized = leaves.optimized(context, dataframe)
        believed = constants.of_plan(context, optimized)
        swaps_full = "full" in sql.lower() and is_lost(context, optimized)
    mended = mend(
        context,
        sql,
        parameters,
        doubted,
        known,
        believed,
        pa.schema(dataframe.schema()),
        is_view=is_view,
        swaps_full=swaps_full,
    )
    if mended is None:
        return PlannedStatement(sql, dataframe, optimized)
    # Without its guards, a statement that is nested too deeply for them could be wrong.
    bounds.check_nesting(mended.sql)
    try:
        other = plan(mended.sql)
        if believed:
            # Fail here rather than with an engine error about text that the user did not write.
            other.execution_plan()
        if _has_columns_of(other, dataframe, mended, context):
            return PlannedStatement(mended.sql, other)
        cause = "its columns would differ"
    except Exception as exc:  # noqa: BLE001 -- any engine error about the rewritten text
        cause = str(exc).splitlines()[0]
    logger.warning(
        "statement could not be rewritten", extra={"sql": sql[:1000], "cause": cause[:1000]}
    )
    if mended.is_needed:
        # Where the engine refuses the statement itself, its own error says why.
        dataframe.execution_plan()
        raise InvalidQueryError(
            "the engine would return a wrong result for this statement; no safe form was found; "
            "docs/reference/sql-limits.md lists such statements and what to write instead"
        )
    return PlannedStatement(sql, dataframe, optimized)


def _has_columns_of(
    other: DataFrame, frame: DataFrame, mended: RewrittenStatement, context: SessionContext
) -> bool:
    """Return whether a rewritten statement has the columns of the original."""
    ours, theirs = pa.schema(other.schema()), pa.schema(frame.schema())
    # A correct result may have a wider type than a wrong one.
    if ours.names != theirs.names or mended.is_needed or ours.types == theirs.types:
        return list(ours.names) == list(theirs.names)
    final, expected = (final_schema(context, each) for each in (other, frame))
    return list(final.types) == list(expected.types)

"""Refuses plans whose producers are known to leave out parts of a statement.

DataFusion's plans of some statements look like those of others, so both are refused. Plans of
DuckDB's extension are refused: 1.1.3 left out the filter of `SELECT k, s FROM t WHERE v > 20`, and
a projection is to drop the columns of its input, which Substrait keeps. Plans of other producers
are taken at their word.
"""

from collections.abc import Sequence

from substrait.algebra_pb2 import Expression
from substrait.type_pb2 import Type

from caraway_engine.client_plans.refusals import unsupported
from caraway_engine.client_plans.words import PlanTerm
from caraway_engine.stages import relations

_PRODUCER = "datafusion"
_REFUSED = "duckdb"
_WHOLE_WINDOWS = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
)
_REQUIRED = Type.NULLABILITY_REQUIRED


class Losses:
    """Refuses the parts of a plan from which its producer may have left something out."""

    def __init__(self, producer: str) -> None:
        """Take the name that a plan gives its producer.

        Raises:
            InvalidQueryError: nothing of its plans can be trusted.
        """
        if producer.lower() == _REFUSED:
            raise unsupported(
                "a plan of DuckDB, whose producer leaves out filters and numbers columns "
                "differently from Substrait,"
            )
        self._is_lossy = producer.lower() == _PRODUCER

    def check_window(self, name: str) -> None:
        """Refuse a window function that may have lost a part.

        Raises:
            InvalidQueryError: it may have had a frame of RANGE with an offset, a FILTER, DISTINCT
                or IGNORE NULLS.
        """
        if self._is_lossy and name not in _WHOLE_WINDOWS:
            raise unsupported(
                f"the window function {name!r} in a plan of DataFusion, whose producer leaves out "
                "offsets of RANGE, FILTER, DISTINCT and IGNORE NULLS,"
            )

    def check_anti(self, condition: Expression, columns: Sequence[PlanTerm]) -> None:
        """Refuse an anti join that may have been NOT IN.

        Raises:
            InvalidQueryError: one of the compared columns may be NULL.
        """
        if not self._is_lossy:
            return
        for each in relations.fields(condition):
            if not _is_required(columns[each.field]):
                raise unsupported(
                    "an anti join of columns that may be NULL in a plan of DataFusion, whose "
                    "producer writes NOT IN and NOT EXISTS alike,"
                )

    def check_rows(self, *, is_distinct: bool) -> None:
        """Refuse a null-safe semi or anti join that may have been INTERSECT ALL or EXCEPT ALL.

        Raises:
            InvalidQueryError: it may have been one.
        """
        if self._is_lossy and not is_distinct:
            raise unsupported(
                "a semi or anti join by IS NOT DISTINCT FROM in a plan of DataFusion, which plans "
                "INTERSECT ALL and EXCEPT ALL in this way,"
            )


def _is_required(column: PlanTerm) -> bool:
    if column.type is None:
        return False
    kind = column.type.WhichOneof("kind")
    return kind is not None and getattr(column.type, kind).nullability == _REQUIRED

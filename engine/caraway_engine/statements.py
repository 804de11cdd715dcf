"""What a planned statement does: reads, writes, depends on the moment; and what is refused."""

import re
from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError, QueryForbiddenError
from caraway_core.ids import TableName

_WRITE = re.compile(r"^\s*Dml: op=\[(?P<op>[^\]]+)\] table=\[(?P<table>[^\]]+)\]", re.MULTILINE)
_COPY = re.compile(r"^\s*CopyTo:", re.MULTILINE)
# Rows that differ from one moment to the next although no dataset changed.
_VOLATILE = re.compile(
    r"\b(?:now|random|uuid|today|current_date|current_time|current_timestamp)\(\)"
    r"|TableScan: (?:\w+\.)?(?:runtime|information_schema)\."
)
_MAY_JOIN = re.compile(r"Join|Subquery|Exists")
# A join without a pair of equal keys: every row is held against every row of the other side.
_PRODUCT = re.compile(r"^\s*(?:Cross Join:|\w+ Join:\s*(?:Filter:|$))", re.MULTILINE)
_DIAGNOSTIC = ("Explain", "Analyze", "DescribeTable", "Plan")


@dataclass(frozen=True, slots=True)
class Effect:
    """What running a plan does besides returning rows."""

    written: TableName | None
    reads_only_catalog: bool


def effect(plan: str) -> Effect:
    """Read a plan in its indented text form."""
    write = _WRITE.search(plan)
    stable = not write and not _VOLATILE.search(plan) and not plan.startswith(_DIAGNOSTIC)
    return Effect(_table_name(write["table"]) if write else None, stable)


def may_join(plan: str) -> bool:
    """Whether a plan, before it is optimized, can hold a join; views are not looked into."""
    return bool(_MAY_JOIN.search(plan))


def is_product(optimized_plan: str) -> bool:
    """Whether a plan holds a join that compares every row with every row."""
    return bool(_PRODUCT.search(optimized_plan))


def check_writes(plan: str, writable: frozenset[TableName]) -> None:
    """Refuse a plan that writes where it may not.

    Raises:
        InvalidQueryError: it copies to a file, or writes in order to explain.
        QueryForbiddenError: the target is read-only.
    """
    if _COPY.search(plan):
        raise InvalidQueryError("COPY is not supported: read the answer of the query instead")
    write = _WRITE.search(plan)
    if write and plan.lstrip().startswith("Analyze"):
        raise InvalidQueryError(
            f"EXPLAIN ANALYZE runs what it explains, so it would {write['op'].lower()} rows; "
            "use EXPLAIN"
        )
    if write and _table_name(write["table"]) not in writable:
        name = _table_name(write["table"])
        raise QueryForbiddenError(
            f"{write['op']} is refused: dataset '{name}' is read-only; "
            "give it `access: read_write` in the manifest to write to it."
        )


def _table_name(reference: str) -> TableName:
    return TableName(reference.removeprefix("caraway.").removeprefix("public."))

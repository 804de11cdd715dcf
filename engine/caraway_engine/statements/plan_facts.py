"""Finds out what a statement reads, writes and may do from its typed plan, never from its text.

A literal or an alias may contain any text, including that of a plan, so displayed plans prove
nothing. Where a part of a plan is hidden, the cautious answers are given: the statement is
volatile, reads every table and runs whole.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from caraway_core.ids import TableName
from caraway_core.statements import DELETE, UPDATE, TableWrite
from caraway_engine.statements import plan_nodes, subplans
from caraway_engine.statements.plan_nodes import Clauses, ExpressionPart, HiddenError, PlanNode

_CATALOG, _SCHEMA = "caraway", "public"
_LISTS = "information_schema"
_SYSTEM_SCHEMAS = frozenset({"runtime", _LISTS})
VOLATILE = frozenset(
    {"now", "random", "uuid", "current_date", "current_time", "input_file_name", "file_row_index"}
)
"""Functions whose value depends on more than their arguments, by their canonical names."""


class Operation(Enum):
    """The kind of a statement."""

    QUERY = "query"
    WRITE = "write"
    COPY = "copy"
    DDL = "ddl"
    EXPLAIN = "explain"
    ANALYZE = "analyze"
    DESCRIBE = "describe"
    SESSION = "session"
    UNKNOWN = "unknown"


_OPERATIONS = {
    "DmlStatement": Operation.WRITE,
    "CopyTo": Operation.COPY,
    "Explain": Operation.EXPLAIN,
    "Analyze": Operation.ANALYZE,
    "DescribeTable": Operation.DESCRIBE,
    **dict.fromkeys(
        ("Prepare", "Execute", "Deallocate", "SetVariable", "ResetVariable", "TransactionStart",
         "TransactionEnd"),
        Operation.SESSION,
    ),
    **dict.fromkeys(
        ("CreateCatalog", "CreateCatalogSchema", "CreateExternalTable", "CreateFunction",
         "CreateIndex", "CreateMemoryTable", "CreateView", "DropCatalogSchema", "DropFunction",
         "DropTable", "DropView"),
        Operation.DDL,
    ),
    **dict.fromkeys((plan_nodes.UNKNOWN, "Extension"), Operation.UNKNOWN),
}  # fmt: skip
_NEVER_CUT = frozenset({"Unnest", "RecursiveQuery", *_OPERATIONS})
_SELECTING = frozenset({"Projection", "SubqueryAlias", "TableScan"})


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts of a plan before it is optimized.

    `scans` has the number of reads of each table. `aliases` are the names given to relations; a
    view, or a table with cast columns, appears in a plan only as an alias. `functions` are the
    scalar functions that may be called. `nested` facts are those of subqueries. `uncut` names what
    would be lost if the plan were distributed, or is None. `is_complete` means that every part of
    the plan was visible.
    """

    operation: Operation
    write: TableWrite | None
    has_copy: bool
    scans: Mapping[TableName, int]
    aliases: frozenset[TableName]
    functions: frozenset[str]
    has_join: bool
    has_subquery: bool
    nested_scans: frozenset[TableName]
    has_nested_join: bool
    uncut: str | None
    is_complete: bool
    names_columns_only: bool
    """True if the statement selects columns of one table, and all of its rows."""

    @property
    def reads_system(self) -> bool:
        """True if the statement reads tables of the runtime."""
        return any(map(is_system, self.scans))

    @property
    def is_volatile(self) -> bool:
        """True if rows may differ from one moment to the next although no dataset changed."""
        return not self.is_complete or self.reads_system or not VOLATILE.isdisjoint(self.functions)

    @property
    def reads_only_catalog(self) -> bool:
        """True if the statement only reads datasets, and always with the same result."""
        is_query = self.operation is Operation.QUERY
        return is_query and not self.write and not self.has_copy and not self.is_volatile

    @property
    def changes_rows(self) -> bool:
        """True if the statement changes or removes existing rows."""
        return self.write is not None and self.write.name in (UPDATE, DELETE)

    @property
    def is_diagnostic(self) -> bool:
        """True if the statement explains or describes another one."""
        return self.operation in (Operation.EXPLAIN, Operation.ANALYZE, Operation.DESCRIBE)

    @property
    def is_only_described(self) -> bool:
        """True if the statement only describes another one, and reads none of its rows."""
        return self.operation in (Operation.EXPLAIN, Operation.DESCRIBE)


def is_system(table: TableName) -> bool:
    """Return whether a table belongs to the runtime, not to the manifest."""
    schema, dot, _ = table.partition(".")
    return bool(dot) and schema in _SYSTEM_SCHEMAS


def of(plan: Any) -> PlanFacts:
    """Return the facts of a logical plan that is not optimized."""
    found = _Found()
    found.add(plan)
    return found.facts()


@dataclass(frozen=True, slots=True)
class OptimizedFacts:
    """The facts of an optimized plan, which is the plan that runs.

    `has_product` means that it contains a product: a join without a pair of equal keys. Unless
    `may_spill`, one of them has a condition or is an outer join. The engine loses or repeats rows
    of such a join if it spills.
    """

    scans: frozenset[TableName]
    has_product: bool
    may_spill: bool = True


WITHOUT_JOINS = OptimizedFacts(frozenset(), has_product=False)


def optimized(plan: object, before: PlanFacts) -> OptimizedFacts:
    """Return the facts of an optimized plan, given the facts of the plan before."""
    scans = set(before.nested_scans)
    has_product, may_spill = False, True
    try:
        for node in nodes(plan) if before.has_nested_join else plan_nodes.nodes(plan):
            if node.kind == "TableScan":
                scans.add(_scanned(node))
            elif node.kind == "Join":
                is_product = not node.variant.on()
                has_product |= is_product
                may_spill &= not is_product or _is_cross(node)
    except HiddenError:
        return OptimizedFacts(frozenset(before.scans), has_product=True, may_spill=False)
    return OptimizedFacts(frozenset(scans), has_product, may_spill)


def nodes(plan: object) -> Iterator[PlanNode]:
    """Yield the nodes of a plan and of the subqueries in its expressions.

    Raises:
        HiddenError: the plan of a subquery is not visible.
    """
    for node in plan_nodes.nodes(plan):
        yield node
        for expression in plan_nodes.expressions(node):
            for part in plan_nodes.inside(expression):
                if part.kind in plan_nodes.SUBQUERIES:
                    yield from nodes(subplans.subplan(part, node).plan)


def table_name(catalog: str | None, schema: str | None, table: str) -> TableName:
    """Return the manifest's name of a table from its name in a plan."""
    # The engine has one list of tables and settings, which it finds in catalogs of any name.
    if schema == _LISTS:
        catalog = _CATALOG
    parts = [catalog or _CATALOG, schema or _SCHEMA, table]
    if parts[0] == _CATALOG:
        parts = parts[1:] if parts[1] != _SCHEMA else parts[2:]
    return TableName(".".join(parts))


def _referred(reference: str) -> TableName:
    """Like `table_name`, for a reference that the engine gives as one string."""
    return TableName(reference.removeprefix(f"{_CATALOG}.").removeprefix(f"{_SCHEMA}."))


def _is_cross(join: PlanNode) -> bool:
    return join.variant.filter() is None and str(join.variant.join_type()) == "Inner"


def _scanned(node: PlanNode) -> TableName:
    return table_name(*node.variant.fqn())


class _Found:
    """Collects the facts of a plan, node by node."""

    def __init__(self) -> None:
        self._operation: Operation | None = None
        self._write: TableWrite | None = None
        self._has_copy = False
        self._scans: Counter[TableName] = Counter()
        self._hidden_scans: set[TableName] = set()
        self._aliases: set[TableName] = set()
        self._functions: set[str] = set()
        self._has_join = self._has_subquery = self._has_nested_join = False
        self._nested_scans: set[TableName] = set()
        self._uncut: str | None = None
        self._is_complete = True
        self._is_simplified = False
        self._names_columns_only = True

    def add(self, plan: Any, *, is_lifted: bool = False) -> None:
        """Visit a plan. If `is_lifted`, it comes from a subquery and is decorrelated."""
        for node in plan_nodes.nodes(plan):
            if self._operation is None:
                self._operation = _OPERATIONS.get(node.kind, Operation.QUERY)
            self._node(node, is_lifted)
            try:
                for expression in plan_nodes.expressions(node):
                    self._expression(expression, node)
            except HiddenError as exc:
                self._mentioned(node, str(exc))

    def facts(self) -> PlanFacts:
        """Return the facts found so far."""
        return PlanFacts(
            self._operation or Operation.UNKNOWN,
            self._write,
            self._has_copy,
            {**dict.fromkeys(self._hidden_scans, 1), **self._scans},
            frozenset(self._aliases),
            frozenset(self._functions) | (VOLATILE if self._is_simplified else frozenset()),
            self._has_join,
            self._has_subquery,
            frozenset(self._nested_scans),
            self._has_nested_join,
            self._uncut,
            self._is_complete,
            self._names_columns_only and self._scans.total() == 1,
        )

    def _mentioned(self, node: PlanNode, hidden: str) -> None:
        """Record what a node mentions where it cannot be walked."""
        self._lose(hidden)
        try:
            found = subplans.mentioned(node)
        except HiddenError:
            self._is_complete = False
            return
        self._has_join = self._has_subquery = self._has_nested_join = True
        self._functions |= found.functions
        for *schemas, name in found.tables:
            catalog, schema = [None, None, *schemas][-2:]
            self._hidden_scans.add(table_name(catalog, schema, name))

    def _lose(self, what: str) -> None:
        self._uncut = self._uncut or what

    def _node(self, node: PlanNode, is_lifted: bool) -> None:
        variant = node.variant
        self._names_columns_only &= node.kind in _SELECTING
        if node.kind in _NEVER_CUT:
            self._lose(node.kind)
        match node.kind:
            case plan_nodes.UNKNOWN | "Extension":
                self._mentioned(node, node.kind)
            case "TableScan":
                self._scans[_scanned(node)] += 1
                if is_lifted:
                    self._nested_scans.add(_scanned(node))
            case "SubqueryAlias":
                self._aliases.add(_referred(variant.alias()))
            case "Join":
                self._join(variant, is_lifted)
            case "DmlStatement":
                self._write = TableWrite(_referred(variant.table_name()), _write_name(variant))
            case "CopyTo":
                self._has_copy = True
            case "WindowExpr":
                self._frames(variant)

    def _join(self, variant: Any, is_lifted: bool) -> None:
        self._has_join = True
        self._has_nested_join |= is_lifted
        # Decorrelation does not distinguish NOT IN, which is NULL-aware, from NOT EXISTS.
        if is_lifted and str(variant.join_type()) == "LeftAnti" and not variant.null_equals_null():
            self._lose("null_aware")

    def _frames(self, variant: Any) -> None:
        for function in variant.get_window_expr():
            frame = variant.get_frame(function)
            if frame is None or not _is_kept(frame):
                self._lose("a window frame with an offset")

    def _expression(self, expression: object, node: PlanNode) -> None:
        is_negated = False
        for part in plan_nodes.inside(expression):
            self._names_columns_only &= part.kind in ("Column", "Alias")
            match part.kind:
                case "Column" | "Literal":
                    continue
                case "ScalarFunction" | "HigherOrderFunction":
                    self._functions.add(part.expression.rex_call_operator())
                case "GroupingSet":
                    self._lose("GROUPING SETS")
                case "AggregateFunction" | "WindowFunction" if part.clauses:
                    self._clauses(part.clauses, part.kind)
                case "Not":
                    is_negated = True
                case kind if kind in plan_nodes.SUBQUERIES:
                    self._subquery(part, node, is_negated)

    def _clauses(self, clauses: Clauses, kind: str) -> None:
        if clauses.has_null_treatment:
            self._lose("IGNORE NULLS")
        if kind == "WindowFunction" and (clauses.filter or clauses.is_distinct):
            self._lose("a window function with FILTER or DISTINCT")

    def _subquery(self, part: ExpressionPart, node: PlanNode, is_negated: bool) -> None:
        self._has_subquery = self._has_join = True
        try:
            subplan = subplans.subplan(part, node)
        except HiddenError as exc:
            return self._mentioned(node, str(exc))
        self._is_simplified |= subplan.is_simplified
        is_in = part.kind == "InSubquery"
        if is_in and (is_negated or part.expression.to_variant().negated()):
            if subplans.may_be_null(part, node, subplan):
                self._lose("null_aware")
        for each in subplan.condition:
            self._expression(each, node)
        self.add(subplan.plan, is_lifted=True)


def _is_kept(frame: Any) -> bool:
    """Return whether Substrait can express a window frame."""
    units, lower, upper = frame.get_frame_units(), frame.get_lower_bound(), frame.get_upper_bound()
    if units == "ROWS":
        return True
    starts_first = lower.is_preceding() and lower.is_unbounded()
    ends_here = upper.is_current_row() or (upper.is_following() and upper.is_unbounded())
    return bool(units == "RANGE" and starts_first and ends_here)


def _write_name(variant: Any) -> str:
    try:
        return str(variant.op().name())
    except NotImplementedError:
        return "Merge"

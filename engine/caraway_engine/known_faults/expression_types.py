"""Gets the types of expressions in a statement from the engine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from datafusion import DataFrame, SessionContext, SQLOptions

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.schemas import KnownSchemas
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_CASE = re.compile(r"\bcase\b", re.IGNORECASE)
_NO_COLUMNS = pa.schema([])
_COALESCE = "coalesce(__a, __b)"
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Types:
    """Gets the types of expressions from the engine, by planning statements that never run."""

    def __init__(
        self,
        context: SessionContext,
        parameters: Mapping[str, object] = _NOTHING,
        known: KnownSchemas | None = None,
    ) -> None:
        self._context = context
        self._parameters = dict(parameters)
        # A parameter has the type of its value.
        self._key = "".join(f"{name} {_type(value)} " for name, value in self._parameters.items())
        self._known = known or KnownSchemas()

    def types_of(self, scope: SelectScope, expressions: Sequence[Tree]) -> list[pa.DataType | None]:
        """Return the type of each expression in a SELECT, or None if it is unknown."""
        types = scope.types
        unknown = list({id(each): each for each in expressions if id(each) not in types}.values())
        pairs = [(each, scope.over_from(each)) for each in unknown]
        plain = [pair for pair in pairs if not scopes.has_aggregate(pair[1])]
        grouped = [pair for pair in pairs if scopes.has_aggregate(pair[1])]
        for group, is_grouped in ((plain, False), (grouped, True)):
            found = self._of(scope, [value for _, value in group], is_grouped)
            for (each, _), type_ in zip(group, found, strict=True):
                scope.note(each, type_)
        return [types[id(each)] for each in expressions]

    def name(self, scope: SelectScope, expression: Tree) -> str | None:
        """Return the name that the engine gives to a column, or None if it is unknown."""
        found = self.names(scope, expression)
        return found[0] if found else None

    def names(self, scope: SelectScope, expression: Tree) -> list[str] | None:
        """Return the names of the columns that an expression is, or None if they are unknown."""
        for each in (scope, *_around(scope)):
            for is_grouped in (False, True):
                schema = self._planned(each, [{"UnnamedExpr": expression}], is_grouped)
                if schema is not None:
                    return list(map(str, schema.names))
        return None

    def columns(self, scope: SelectScope, relations: list[Tree]) -> list[str] | None:
        """Return the column names of a FROM, or None if they are unknown."""
        schema = self._of_relations(relations, _needed(scope.with_, relations))
        return None if schema is None else list(schema.names)

    def struct_columns(self, scope: SelectScope) -> frozenset[str] | None:
        """Return the names of structs in FROM, also of outer queries, or None if unknown."""
        found: set[str] = set()
        for each in (scope, *_around(scope)):
            from_ = each.select["from"]
            schema = (
                self._of_relations(from_, _needed(scope.with_, from_)) if from_ else _NO_COLUMNS
            )
            if schema is None:
                return None
            found.update(field.name for field in schema if pa.types.is_struct(field.type))
        return frozenset(found)

    def schema_of_relation(self, relation: Tree) -> pa.Schema | None:
        """Return the schema of a table or view, or None if there is none of the name."""
        return self._of_relations([{"relation": relation, "joins": []}], None)

    def _of_relations(self, relations: list[Tree], with_: Tree) -> pa.Schema | None:
        (star,) = syntax.parse("SELECT *")
        items = star["Query"]["body"]["Select"]["projection"]
        return self._schema(syntax.select(items, relations, with_))

    def is_computed(self, relation: Tree, scope: SelectScope) -> bool:
        """Return whether a relation in FROM is not a table, but a query of its own."""
        if "Table" not in relation:
            return True
        parts = [each.get("Identifier") for each in relation["Table"]["name"]]
        if not all(parts):
            return False
        names = [syntax.spelled(each) for each in parts]
        own = scope.with_["cte_tables"] if scope.with_ else ()
        is_cte = any([syntax.spelled(cte["alias"]["name"])] == names for cte in own)
        return is_cte or self._is_view(".".join(f'"{name}"' for name in names))

    def _is_view(self, name: str) -> bool:
        try:
            plan = str(self._context.table(name).logical_plan().display())
        except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
            return False
        return plan.startswith("SubqueryAlias")

    def can_stand_alone(self, query: Tree, scope: SelectScope) -> bool:
        """Return whether a subquery can be planned without its outer query."""
        return self.schema(query, scope.with_) is not None

    def schema(self, query: Tree, with_: Tree) -> pa.Schema | None:
        """Return the schema of a query, or None if it cannot be planned."""
        return self._schema(self._alone(query, with_))

    def first_schema(self, query: Tree, with_: Tree) -> pa.Schema | None:
        """Return the schema before CASE and set operations get common types; None if unknown."""
        return self._schema(self._alone(query, with_), is_final=False)

    def _alone(self, query: Tree, with_: Tree) -> str:
        own = query["with"]
        if with_ and own:
            kept = [
                each
                for each in with_["cte_tables"]
                if not any(each is one for one in own["cte_tables"])
            ]
            with_ = {**with_, "cte_tables": kept}
        with_ = _needed(scopes.combined_with(with_, own), query["body"])
        return syntax.restored({"Query": {**query, "with": with_}})

    def _of(
        self, scope: SelectScope, expressions: Sequence[Tree], is_grouped: bool
    ) -> list[pa.DataType | None]:
        if not expressions:
            return []
        items = [scopes.named(each, f"c{number}") for number, each in enumerate(expressions)]
        for each in (scope, *_around(scope)):
            schema = self._planned(each, items, is_grouped)
            if schema is not None:
                return list(schema.types)
        # Inner columns take precedence over outer ones of the same name.
        schema = self._nested(scope, items, is_grouped)
        if schema is not None:
            return list(schema.types)
        if len(expressions) == 1:
            return [None]
        return [type_ for each in expressions for type_ in self._of(scope, [each], is_grouped)]

    def _nested(self, scope: SelectScope, items: list[Tree], is_grouped: bool) -> pa.Schema | None:
        """Return the types of expressions that are subqueries of the outer queries."""
        outer = scope.parent
        if outer is None:
            return None
        group_by = self._group_by(scope) if is_grouped else None
        wrapped = [_one_value(each, scope.select["from"], group_by) for each in items]
        schema = self._planned(outer, wrapped, False)
        if schema is not None:
            return schema
        return self._nested(outer, wrapped, False)

    def _planned(self, scope: SelectScope, items: list[Tree], is_grouped: bool) -> pa.Schema | None:
        group_by = self._group_by(scope) if is_grouped else None
        with_ = _needed(scope.with_, [scope.select["from"], items])
        sql = syntax.select(items, scope.select["from"], with_, group_by)
        return self._schema(sql, are_named=all("ExprWithAlias" in each for each in items))

    def _group_by(self, scope: SelectScope) -> Tree:
        return scopes.group_by(scope, lambda: self.columns(scope, scope.select["from"]))

    def _schema(
        self, sql: str, *, is_final: bool = True, are_named: bool = False
    ) -> pa.Schema | None:
        """Return the schema of a statement, or None if it cannot be planned.

        If all its items are named, its names and types do not depend on the conditions of CASE.
        """
        key = f"{self._key}{'' if is_final else 'first '}{sql}"
        if (known := self._known.recall(key)) is not None:
            return known
        has_case = is_final and _CASE.search(sql) is not None
        alike = self._frame(_with_common_types(sql)) if has_case else None
        if are_named and alike is not None and not _changes_types(self._context, alike):
            schema = pa.schema(alike.schema())
        else:
            frame = self._frame(sql)
            if frame is None:
                return None
            schema = pa.schema(frame.schema())
            if is_final:
                schema = self._final(frame, alike if has_case else frame, schema)
        self._known.remember(key, schema)
        return schema

    def _frame(self, sql: str | None) -> DataFrame | None:
        if sql is None:
            return None
        try:
            return self._context.sql(sql, options=_READ_ONLY, param_values=self._parameters)
        except Exception:  # noqa: BLE001 -- on any engine error, the type is unknown
            return None

    def _final(self, frame: DataFrame, alike: DataFrame | None, schema: pa.Schema) -> pa.Schema:
        """Return the schema after CASE and UNION got common types.

        To optimize the statement takes ten times as long as to plan it, so that is done for unions
        of different types and for CASE in views only, and where CASE has a type but coalesce none.
        """
        if alike is None or _changes_types(self._context, alike):
            return final_schema(self._context, frame)
        types = pa.schema(alike.schema()).types
        fields = [field.with_type(type_) for field, type_ in zip(schema, types, strict=False)]
        return pa.schema(fields) if len(types) == len(schema) else schema


def _changes_types(context: SessionContext, frame: DataFrame) -> bool:
    """Return whether a plan has a CASE, or a UNION of different types, which get a common one."""
    waiting = [frame.logical_plan()]
    while waiting:
        plan = waiting.pop()
        inputs = plan.inputs()
        waiting += inputs
        # A view is a plan by now, of which the text of the statement says nothing.
        if len(inputs) == 1 and "CASE " in plan.display():
            return True
        if len(inputs) > 1 and plan.display().startswith("Union"):
            sides = [context.create_dataframe_from_logical_plan(each) for each in inputs]
            types = [pa.schema(each.schema()).types for each in sides]
            if any(each != types[0] for each in types[1:]):
                return True
    return False


def _with_common_types(sql: str) -> str | None:
    """Write `coalesce` for CASE, which has the common type of its results from the beginning."""
    try:
        (statement,) = syntax.parse(sql)
    except (syntax.SyntaxUnknownError, ValueError):
        return None
    found = [each for each in syntax.everything(statement) if syntax.kind(each) == "Case"]
    # Inner ones first, because outer ones take them over.
    for each in reversed(found):
        case = each["Case"]
        results = [when["result"] for when in case["conditions"]]
        form = {"Nested": results[0]}
        for other in [*results[1:], *([case["else_result"]] if case["else_result"] else [])]:
            form = syntax.filled(_COALESCE, a=form, b=other)
        syntax.replace(each, form)
    return syntax.restored(statement) if found else sql


def final_schema(context: SessionContext, frame: DataFrame) -> pa.Schema:
    """Return the schema after the parts of CASE and set operations got common types."""
    schema = pa.schema(frame.schema())
    try:
        plan = frame.optimized_logical_plan()
        final = pa.schema(context.create_dataframe_from_logical_plan(plan).schema())
    except Exception:  # noqa: BLE001 -- what the engine cannot plan has no other types
        return schema
    return final if final.names == schema.names else schema


def _type(value: object) -> str:
    return str(value.type) if isinstance(value, pa.Scalar) else type(value).__name__


def _needed(with_: Tree, tree: Tree) -> Tree:
    """Return only the CTEs that a tree reads, directly or through others."""
    if with_ is None:
        return None
    names = set(scopes.read(tree))
    kept: list[Tree] = []
    for cte in reversed(with_["cte_tables"]):
        if syntax.spelled(cte["alias"]["name"]) in names:
            names.update(scopes.read(cte["query"]))
            kept.insert(0, cte)
    return {**with_, "cte_tables": kept} if kept else None


def _around(scope: SelectScope) -> Iterator[SelectScope]:
    """Yield the scope with the FROM of its outer queries added, one level at a time."""
    from_, outer = [*scope.select["from"]], scope.parent
    while outer is not None:
        from_ += outer.select["from"]
        yield SelectScope({**scope.select, "from": from_}, scope.query, scope.with_, None, False)
        outer = outer.parent


def _one_value(item: Tree, from_: list[Tree], group_by: Tree) -> Tree:
    select = syntax.selected([item], from_, None)
    if group_by is not None:
        select["group_by"] = group_by
    name = item["ExprWithAlias"]["alias"]["value"]
    return scopes.named({"Subquery": syntax.query({"Select": select})}, name)

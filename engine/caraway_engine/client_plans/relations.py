"""Relations of Substrait as SQL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from substrait.algebra_pb2 import Expression, JoinRel, Rel, SetRel
from substrait.type_pb2 import Type

from caraway_engine.client_plans import literals, older, refusals, types, words
from caraway_engine.client_plans.blocks import Aliases, Block, inner_name
from caraway_engine.client_plans.expressions import Scope
from caraway_engine.client_plans.losses import Losses
from caraway_engine.client_plans.names import PlanFunctions
from caraway_engine.client_plans.refusals import only, refusal, unsupported
from caraway_engine.client_plans.words import PlanTerm
from caraway_engine.stages.relations import field_of

SchemaOf = Callable[[Sequence[str]], pa.Schema]
_JOINS: dict[int, str] = {
    JoinRel.JOIN_TYPE_INNER: "JOIN",
    JoinRel.JOIN_TYPE_OUTER: "FULL JOIN",
    JoinRel.JOIN_TYPE_LEFT: "LEFT JOIN",
    JoinRel.JOIN_TYPE_RIGHT: "RIGHT JOIN",
    JoinRel.JOIN_TYPE_LEFT_SEMI: "LEFT SEMI JOIN",
    JoinRel.JOIN_TYPE_LEFT_ANTI: "LEFT ANTI JOIN",
    JoinRel.JOIN_TYPE_RIGHT_SEMI: "RIGHT SEMI JOIN",
    JoinRel.JOIN_TYPE_RIGHT_ANTI: "RIGHT ANTI JOIN",
}
_SETS: dict[int, tuple[str, bool]] = {
    SetRel.SET_OP_UNION_ALL: ("UNION ALL", True),
    SetRel.SET_OP_UNION_DISTINCT: ("UNION", True),
    SetRel.SET_OP_MINUS_PRIMARY: ("EXCEPT", True),
    SetRel.SET_OP_MINUS_PRIMARY_ALL: ("EXCEPT ALL", False),
    SetRel.SET_OP_INTERSECTION_PRIMARY: ("INTERSECT", False),
    SetRel.SET_OP_INTERSECTION_MULTISET: ("INTERSECT", True),
    SetRel.SET_OP_INTERSECTION_MULTISET_ALL: ("INTERSECT ALL", False),
}
"""The words for each operation, and whether it is that of SQL for more than two inputs, too."""
_MOST_ROWS = 2**63 - 1
_MOST_COLUMNS = 5_000
_TOO_WIDE = f"a relation has more than {_MOST_COLUMNS:,} columns"


class PlanWriter:
    """Writes the relations of one plan. `schema_of` returns the columns of a table."""

    def __init__(self, functions: PlanFunctions, losses: Losses, schema_of: SchemaOf) -> None:
        self._losses = losses
        self._functions = functions
        self._schema_of = schema_of
        self._aliases = Aliases()

    def block(self, rel: Rel, outer: Scope | None = None) -> Block:
        """Write a relation; its expressions may read `outer`.

        Raises:
            InvalidQueryError: it is wrong, or a part of it is not supported.
        """
        kind = str(rel.WhichOneof("rel_type"))
        maker = _MAKERS.get(kind)
        if maker is None:
            raise unsupported(_WRITING if kind in ("write", "ddl", "update") else f"Rel.{kind}")
        found = getattr(rel, kind)
        block = maker(self, found, outer)
        only(found.common, "direct", "emit", "rel_anchor")
        if found.common.HasField("emit"):
            block = self._picked(block, list(found.common.emit.output_mapping))
        if len(block.columns) > _MOST_COLUMNS:
            raise refusal(_TOO_WIDE)
        return block

    def statement(self, rel: Rel, named: Callable[[Sequence[PlanTerm]], Sequence[str]]) -> str:
        """Write a relation as a statement; `named` names its columns. Raises as `block` does."""
        block = self.block(rel)
        names = [words.name(each) for each in named(block.columns)]
        read = {(term.sql, name) for term, name in zip(block.columns, names, strict=True)}
        keys = {(term.sql, name) for term, _ in block.order for name in names}
        if any(sql.endswith(f".{name}") for sql, name in keys - read):
            # A key and another column of the answer may not have one name.
            block = self._aliases.wrapped(block)
        return block.select(names)

    def _query(self, rel: Rel, outer: Scope) -> tuple[str, Sequence[PlanTerm]]:
        block = self.block(rel, outer)
        return block.select(), block.columns

    def _scope(self, columns: Sequence[PlanTerm], outer: Scope | None) -> Scope:
        return Scope(columns, self._functions, self._losses, self._query, outer)

    def _picked(self, block: Block, places: Sequence[int]) -> Block:
        if not all(0 <= place < len(block.columns) for place in places):
            raise refusal("a relation emits a column that it does not have")
        computed = [place for place in places if not block.columns[place].is_column]
        if len(set(computed)) < len(computed):
            block = self._aliases.wrapped(block)
        return replace(block, columns=tuple(block.columns[place] for place in places))

    def _read(self, read: Any, outer: Scope | None) -> Block:
        only(
            read, "common", "base_schema", "filter", "best_effort_filter", "projection",
            "named_table", "virtual_table",
        )  # fmt: skip
        block = self._table(read) if read.HasField("named_table") else self._values(read)
        for condition in ("filter", "best_effort_filter"):
            if read.HasField(condition):
                scope = self._scope(block.columns, outer)
                term = scope.written(getattr(read, condition))
                block = replace(block, where=(*block.where, term))
        if not read.HasField("projection"):
            return block
        only(read.projection, "select", "maintain_singular_struct")
        only(read.projection.select, "struct_items")
        for item in read.projection.select.struct_items:
            only(item, "field")
        return self._picked(block, [item.field for item in read.projection.select.struct_items])

    def _columns(self, read: Any) -> list[tuple[str, Type]]:
        columns = types.columns_of(list(read.base_schema.names), read.base_schema.struct)
        if columns is None:
            raise refusal("the schema of a read has other names than types")
        if len(columns) > _MOST_COLUMNS:
            raise refusal(_TOO_WIDE)
        return columns

    def _table(self, read: Any) -> Block:
        only(read.named_table, "names")
        names = list(read.named_table.names)
        if not 1 <= len(names) <= 3:
            raise refusal("a table has no name, or more than a catalog, a schema and a name")
        said = self._columns(read)
        schema = self._schema_of(names)
        alias = self._aliases.next()
        columns = []
        for name, type_ in said:
            if len(schema.get_all_field_indices(name)) != 1:
                raise refusal(f"the table {'.'.join(names)!r} has no column {name!r}")
            arrow = schema.field(name).type
            if not types.has(arrow, type_):
                raise refusal(
                    f"the column {name!r} of {'.'.join(names)!r} has the type {arrow}, but the "
                    f"plan says {types.described(type_)}"
                )
            sql = f"{alias}.{words.name(name)}"
            columns.append(PlanTerm(sql, type_, is_column=True, is_atomic=True))
        table = ".".join(words.name(each) for each in names)
        return Block(f"{table} AS {alias}", tuple(columns))

    def _values(self, read: Any) -> Block:
        if not read.HasField("virtual_table"):
            raise unsupported(f"ReadRel.{read.WhichOneof('read_type')}")
        only(read.virtual_table, "expressions")
        said = self._columns(read)
        alias = self._aliases.next()
        rows = [
            [self._value(each) for each in row.fields] for row in read.virtual_table.expressions
        ]
        if any(len(row) != len(said) for row in rows):
            raise refusal("a row of values has more or fewer values than columns")
        if not said or not rows:
            if len(rows) > 1:
                raise unsupported("several rows without columns")
            items = [
                f"{_null(type_)} AS {inner_name(place)}" for place, (_, type_) in enumerate(said)
            ]
            empty = "" if rows else " WHERE FALSE"
            source = f"(SELECT {', '.join(items) or '1 AS __0'}{empty}) AS {alias}"
        else:
            names = ", ".join(map(inner_name, range(len(said))))
            texts = ", ".join(f"({', '.join(row)})" for row in rows)
            source = f"(VALUES {texts}) AS {alias}({names})"
        columns = tuple(
            PlanTerm(f"{alias}.{inner_name(place)}", type_, is_column=True, is_atomic=True)
            for place, (_, type_) in enumerate(said)
        )
        return Block(source, columns)

    def _value(self, expression: Expression) -> str:
        if expression.WhichOneof("rex_type") != "literal":
            raise unsupported("a row of values with other expressions than literals")
        return literals.written(expression.literal)[0]

    def _filter(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "input", "condition")
        block = self._aliases.plain(self.block(found.input, outer))
        term = self._scope(block.columns, outer).written(found.condition)
        if term.has_window:
            raise unsupported("a window function in a filter")
        return replace(block, where=(*block.where, term))

    def _project(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "input", "expressions")
        block = self.block(found.input, outer)
        if any(field_of(each) is None for each in found.expressions):
            block = self._aliases.plain(block)
        scope = self._scope(block.columns, outer)
        terms = [scope.written(each) for each in found.expressions]
        return replace(block, columns=(*block.columns, *terms))

    def _sort(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "input", "sorts")
        block = self._aliases.plain(self.block(found.input, outer))
        scope = self._scope(block.columns, outer)
        keys = tuple(scope.key(each) for each in found.sorts)
        if words.any_window(term for term, _ in keys):
            raise unsupported("a window function as a key of sorting")
        return replace(block, order=tuple(key for key in keys if not key[0].is_literal))

    def _fetch(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "input", "offset_expr", "count_expr")
        block = self.block(found.input, outer)
        if block.is_cut:
            block = self._aliases.wrapped(block)
        limit, offset = _number(found, "count_expr", 4), _number(found, "offset_expr", 3)
        return replace(block, limit=limit, offset=offset or 0)

    def _aggregate(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "input", "groupings", "measures", "grouping_expressions")
        if len(found.groupings) > 1:
            raise unsupported("an aggregate with several groupings")
        block = replace(self._aliases.plain(self.block(found.input, outer)), order=())
        scope = self._scope(block.columns, outer)
        expressions = _keys(found)
        if not expressions and not found.measures:
            raise refusal("an aggregate has no keys and no measures")
        keys = [scope.written(each) for each in expressions]
        if not all(each.is_column for each in keys):
            width = len(block.columns)
            block = self._aliases.wrapped(replace(block, columns=(*block.columns, *keys)))
            keys = list(block.columns[width:])
            scope = self._scope(block.columns[:width], outer)
        measures = [scope.measure(each) for each in found.measures]
        grouping = ", ".join(each.sql for each in keys)
        columns = tuple(replace(each, is_column=False) for each in keys)
        return replace(block, columns=(*columns, *measures), grouping=grouping)

    def _join(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "left", "right", "expression", "post_join_filter", "type")
        word = _JOINS.get(found.type)
        if word is None or found.HasField("post_join_filter"):
            raise unsupported("this type of join, or a filter after a join,")
        left, right = self._sides(found, outer)
        both = (*left.columns, *right.columns)
        condition = "TRUE"
        if found.HasField("expression"):
            condition = self._scope(both, outer).written(found.expression).sql
            self._check_losses(found, word, both)
        source = f"{left.source} {word} {right.source} ON {condition}"
        if word.startswith("LEFT ") and word != "LEFT JOIN":
            both = left.columns
        elif word.startswith("RIGHT ") and word != "RIGHT JOIN":
            both = right.columns
        return Block(source, both, is_compound=True)

    def _check_losses(self, found: Any, word: str, columns: Sequence[PlanTerm]) -> None:
        if not word.endswith(("ANTI JOIN", "SEMI JOIN")):
            return
        is_null_safe = self._functions.joined(found.expression) == {"is_not_distinct_from"}
        if is_null_safe:
            kept = found.left if word.startswith("LEFT") else found.right
            self._losses.check_rows(is_distinct=kept.WhichOneof("rel_type") == "aggregate")
        elif word.endswith("ANTI JOIN"):
            self._losses.check_anti(found.expression, columns)

    def _cross(self, found: object, outer: Scope | None) -> Block:
        only(found, "common", "left", "right")
        left, right = self._sides(found, outer)
        source = f"{left.source} CROSS JOIN {right.source}"
        return Block(source, (*left.columns, *right.columns), is_compound=True)

    def _sides(self, found: Any, outer: Scope | None) -> tuple[Block, Block]:
        left = self._aliases.item(self.block(found.left, outer), alone=False)
        return left, self._aliases.item(self.block(found.right, outer), alone=True)

    def _set(self, found: Any, outer: Scope | None) -> Block:
        only(found, "common", "inputs", "op")
        word, of_many = _SETS.get(found.op, ("", False))
        if not word or len(found.inputs) < 2 or (len(found.inputs) > 2 and not of_many):
            raise unsupported("this operation of sets with this number of inputs")
        blocks = [self.block(each, outer) for each in found.inputs]
        first = blocks[0].columns
        for block in blocks[1:]:
            if len(block.columns) != len(first):
                raise refusal("the inputs of an operation of sets differ in their columns")
            for one, other in zip(first, block.columns, strict=True):
                if one.type is not None and other.type is not None:
                    _check_alike(one.type, other.type)
        if not first:
            raise unsupported("an operation of sets without columns")
        texts = [self._operand(each) for each in blocks]
        alias = self._aliases.next()
        columns = tuple(
            PlanTerm(f"{alias}.{inner_name(place)}", term.type, is_column=True, is_atomic=True)
            for place, term in enumerate(first)
        )
        return Block(f"({f' {word} '.join(texts)}) AS {alias}", columns)

    def _operand(self, block: Block) -> str:
        cut = self._aliases.wrapped(block) if block.is_cut else block
        return replace(cut, order=()).select()


def _keys(aggregate: Any) -> list[Expression]:
    """Return what an aggregate groups by."""
    found = list(aggregate.grouping_expressions)
    for grouping in aggregate.groupings:
        # Field 1 had the expressions themselves; some producers write only it, some both.
        old = [Expression.FromString(each) for each in older.values(grouping, 1)]
        for each in old:
            refusals.check_known(each)
        if list(grouping.expression_references) == list(range(len(found))):
            if found and old and old != found:
                raise refusal("the two forms of the keys of an aggregate differ")
            return found or old
        break
    if found or aggregate.groupings:
        raise unsupported("an aggregate whose grouping does not use its expressions in their order")
    return found


def _check_alike(one: Type, other: Type) -> None:
    if types.kind(one) != types.kind(other) and not types.are_integers(one, other):
        raise refusal(
            f"an operation of sets joins {types.described(one)} and {types.described(other)}"
        )


def _null(type_: Type) -> str:
    sql = types.cast("NULL", type_)
    if sql is None:
        raise unsupported(f"a value of type {types.kind(type_)}")
    return sql


def _number(found: Any, name: str, old: int) -> int | None:
    """Return a number of rows; None where there is no limit."""
    if not found.HasField(name):
        value = older.number(found, old)
        # Older plans say -1 for all rows.
        return None if value == -1 else _checked(value)
    literal = getattr(found, name).literal
    kind = str(literal.WhichOneof("literal_type"))
    if kind == "null":
        return None
    if kind not in ("i8", "i16", "i32", "i64"):
        raise unsupported("a number of rows that is no literal")
    return _checked(int(getattr(literal, kind)))


def _checked(value: int | None) -> int | None:
    if value is not None and value < 0:
        raise refusal("a number of rows is negative")
    return None if value == _MOST_ROWS else value


_WRITING = "a plan that writes"
_MAKERS: dict[str, Callable[[PlanWriter, object, Scope | None], Block]] = {
    "read": PlanWriter._read,
    "filter": PlanWriter._filter,
    "project": PlanWriter._project,
    "sort": PlanWriter._sort,
    "fetch": PlanWriter._fetch,
    "aggregate": PlanWriter._aggregate,
    "join": PlanWriter._join,
    "cross": PlanWriter._cross,
    "set": PlanWriter._set,
}

"""Computes random values where they are written, and once.

DataFusion 55 applies `WHERE random() < 0.5` below the joins, windows and groups of FROM, HAVING
below its own groups, and QUALIFY below its own windows. A condition that also reads what is
computed there stays. It is the same for a relation whose rows a LIMIT counts.

The optimizer writes a condition with `floor(x) = 2` or `CASE WHEN x THEN` such that it has x twice.
Forms that it does not know have it once.
"""

from collections.abc import Iterator

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_AFTER = "concat(__term, __seen) LIKE 'true%'"
_IS_NULL = "nullif(__column, NULL) IS NULL"
_BOTH = "concat(__a, __b)"
_ROWS = "count(*)"
_NUMBERS = "row_number() OVER ()"
_COMPARED = ("Floor", "Extract")
_PARTS = ("date_part", "datepart")
_WHOLE = f"SELECT * FROM (SELECT * FROM __relation LIMIT {2**63 - 1}) AS __name"


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may compute random values."""
    return "rand" in words or "uuid" in words


def mend(statement: Tree, types: Types) -> bool:
    """Rewrite what the engine would compute elsewhere or twice; return whether there was any.

    Raises:
        InvalidQueryError: the columns of a join with such a condition are not known.
    """
    changed = [_compute_once(each) for each in list(syntax.everything(statement))]
    for scope in list(scopes.scopes(statement)):
        select = scope.select
        changed.append(_keep(_terms(select["having"]), syntax.filled(_ROWS)))
        changed.append(_keep(_terms(select["qualify"]), syntax.filled(_NUMBERS)))
        changed += [_mend_on(join, scope, types) for join in scope.joins()]
        changed.append(_mend_where(scope, types))
    return any(changed)


def _is_random(expression: Tree) -> bool:
    """Return whether an expression is random for each row, which a subquery in it is not."""
    return any(syntax.function_name(each) in scopes.VOLATILE for each in syntax.inside(expression))


def _compute_once(each: Tree) -> bool:
    kind = syntax.kind(each)
    if kind == "Case" and each["Case"]["operand"] is None:
        if any(_is_random(when["condition"]) for when in each["Case"]["conditions"]):
            _chain(each["Case"])
            return True
    elif (kind in _COMPARED or syntax.function_name(each) in _PARTS) and _is_random(each):
        syntax.replace(each, syntax.filled(syntax.OPAQUE, a=dict(each)))
        return True
    return False


def _chain(case: Tree) -> None:
    """Compare each condition with true: such a CASE stays one."""
    first, *others = case["conditions"]
    if others:
        rest = {**case, "conditions": others}
        _chain(rest)
        case["else_result"] = {"Nested": {"Case": rest}}
    case["operand"] = {"Nested": first["condition"]}
    case["conditions"] = [{**first, "condition": syntax.filled("true")}]


def _terms(condition: Tree) -> list[Tree]:
    return [each for each in joining.conjuncts(condition) if _is_random(each)]


def _keep(terms: list[Tree], seen: Tree) -> bool:
    """Make terms read what only rows of the whole FROM have; return whether there are any."""
    for each in terms:
        syntax.replace(each, {"Nested": syntax.filled(_AFTER, term=dict(each), seen=seen)})
    return bool(terms)


def _mend_on(join: Tree, scope: SelectScope, types: Types) -> bool:
    terms = [term for each in scopes.on(join) for term in _terms(each)]
    if not terms:
        return False
    relations = [*joining.before(scope, join), *joining.tables(join["relation"])]
    return _keep(terms, _columns_of(relations, scope, types))


def _mend_where(scope: SelectScope, types: Types) -> bool:
    terms = _terms(scope.select["selection"])
    items = scope.select["from"]
    whole = [each for one in items for each in (one, *one["joins"])]
    relations = [table for each in whole for table in joining.tables(each["relation"])]
    if not terms or not relations:
        return False
    if len(relations) == 1:
        return _keep_whole(relations[0], scope, types)
    return _keep(terms, _columns_of(relations, scope, types))


def _columns_of(relations: list[Tree], scope: SelectScope, types: Types) -> Tree:
    """Return an expression that reads a column of each relation."""
    parts = list(_null_checks(relations, scope, types))
    seen = parts[0]
    for each in parts[1:]:
        seen = syntax.filled(_BOTH, a=seen, b=each)
    return seen


def _null_checks(relations: list[Tree], scope: SelectScope, types: Types) -> Iterator[Tree]:
    for each in relations:
        try:
            found = joining.relation_of(each, scope, types)
        except InvalidQueryError:
            found = None
        if found is None or not found.columns:
            raise InvalidQueryError(
                "a condition with random() or uuid() over this join is not supported: the engine "
                "would apply it to one side; select the random value as a column of a subquery "
                "that joins, and compare that column"
            )
        yield syntax.filled(_IS_NULL, column=found.column(found.columns[0]))


def _keep_whole(relation: Tree, scope: SelectScope, types: Types) -> bool:
    """Count the rows of a relation; return whether it is more than a table."""
    if not types.is_computed(relation, scope):
        return False
    (made,) = syntax.parse(_WHOLE)
    outer = made["Query"]["body"]["Select"]["from"][0]["relation"]
    inner = outer["Derived"]["subquery"]["body"]["Select"]["from"][0]
    inner["relation"] = dict(relation)
    name = _name_of(relation)
    if name is None:
        outer["Derived"]["alias"] = None
    else:
        outer["Derived"]["alias"]["name"] = name
    syntax.replace(relation, outer)
    return True


def _name_of(relation: Tree) -> Tree:
    inner = syntax.body(relation)
    if inner.get("alias"):
        return inner["alias"]["name"]
    return inner["name"][-1]["Identifier"] if "name" in inner else None

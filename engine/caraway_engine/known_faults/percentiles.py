"""Computes percentiles between two values exactly, because DataFusion 55 cuts the weight off.

It has six digits, so the 0.7 of 10, 20, 30, 40 and 50 is 37.99999. The values are sorted instead,
and the two that are next to the place of the percentile are looked up. Each row of a window would
hold its values, so this is done for small frames only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_NAMES = ("percentile_cont", "quantile_cont")
_VALUES = "array_agg(CAST(__x AS DOUBLE)) FILTER (WHERE __kept)"
_SORTED = "array_sort(__values, '{direction}')"
_PLACE = "CAST(__p AS DOUBLE) * (array_length(__sorted) - 1)"
_LOWER = "array_element(__sorted, CAST(floor(__place) AS BIGINT) + 1)"
_UPPER = "array_element(__sorted, CAST(ceil(__place) AS BIGINT) + 1)"
# The difference of infinities is NaN.
_FORM = (
    "CAST(CASE WHEN __lower = __upper THEN __lower WHEN abs(__lower) = CAST('inf' AS DOUBLE) THEN "
    "__lower + __upper ELSE __lower + (__upper - __lower) * (__place - floor(__place)) END "
    "AS {type})"
)
# The engine refuses a share that is none where it computes the percentile.
_CHECKED = "CASE WHEN __call IS NOT NULL THEN __form END"
_MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class _Percentile:
    """A call with the values that it orders, and the share of them that it leaves below."""

    call: Tree
    value: Tree
    share: Tree
    is_descending: bool


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may compute percentiles."""
    return any(name in words for name in _NAMES)


def mend(scope: SelectScope, types: Types) -> bool:
    """Compute percentiles from two sorted values; return whether there were any."""
    found = [each for each in map(_read, list(scope.expressions())) if each is not None]
    known = types.types_of(scope, [each.value for each in found])
    numbers = [
        (each, type_)
        for each, type_ in zip(found, known, strict=True)
        if type_ is not None and _is_number(type_)
    ]
    for each, type_ in numbers:
        name = "FLOAT" if type_ == pa.float32() else "DOUBLE"
        form = _form(each, name)
        if not _is_known(each.share):
            form = syntax.filled(_CHECKED, call=dict(each.call), form=form)
        syntax.replace(each.call, {"Nested": form})
    return bool(numbers)


def _is_number(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _read(tree: Tree) -> _Percentile | None:
    if syntax.function_name(tree) not in _NAMES:
        return None
    given, keys = syntax.arguments(tree), tree["Function"]["within_group"]
    if len(keys) == 1 and len(given) == 1:
        options = keys[0]["options"]
        found = _Percentile(tree, keys[0]["expr"], given[0], options["asc"] is False)
    elif not keys and len(given) == 2:
        found = _Percentile(tree, given[0], given[1], False)
    else:
        return None
    is_exact = scopes.is_costly(found.value) or not _is_share(found.share)
    return None if is_exact or not _is_small(tree["Function"]["over"]) else found


def _is_share(tree: Tree) -> bool:
    """Return whether an expression may be a number from 0 to 1."""
    inner = syntax.unnested(tree)
    if syntax.kind(inner) != "Value":
        return True
    value = inner["Value"]["value"]
    return syntax.kind(value) == "Placeholder" or _is_known(tree)


def _is_known(tree: Tree) -> bool:
    """Return whether an expression is a literal from 0 to 1."""
    inner = syntax.unnested(tree)
    value = inner["Value"]["value"] if syntax.kind(inner) == "Value" else {}
    return syntax.kind(value) == "Number" and 0 <= float(value["Number"][0]) <= 1


def _is_small(over: Tree | None) -> bool:
    """Return whether the frames of a window have few rows; all rows of a group are one frame."""
    if over is None:
        return True
    frame = over["WindowSpec"]["window_frame"] if "WindowSpec" in over else None
    if frame is None or frame["units"] != "Rows":
        return False
    ends = (frame["start_bound"], frame["end_bound"])
    return all(map(_is_near, ends))


def _is_near(end: Tree | None) -> bool:
    if end is None or end == "CurrentRow":
        return True
    rows = syntax.number(syntax.body(end)) if syntax.body(end) else None
    return rows is not None and rows <= _MOST_ROWS


def _form(of: _Percentile, type_: str) -> Tree:
    sorted_ = syntax.filled(
        _SORTED.format(direction="DESC" if of.is_descending else "ASC"), values=_values(of)
    )
    place = syntax.filled(_PLACE, p=of.share, sorted=sorted_)
    lower, upper = (syntax.filled(each, sorted=sorted_, place=place) for each in (_LOWER, _UPPER))
    return syntax.filled(_FORM.format(type=type_), lower=lower, upper=upper, place=place)


def _values(of: _Percentile) -> Tree:
    """Return the call that collects the values, over the same rows."""
    given = of.call["Function"]
    kept: Tree = {"IsNotNull": {"Nested": of.value}}
    if given["filter"] is not None:
        kept = syntax.filled("__a AND __b", a=given["filter"], b=kept)
    form = syntax.filled(_VALUES, x=of.value, kept=kept)["Function"]
    listed = {**form["args"]["List"], "duplicate_treatment": _duplicates(given)}
    return {"Function": {**form, "args": {"List": listed}, "over": given["over"]}}


def _duplicates(given: Tree) -> Sequence[str] | None:
    treatment: Sequence[str] | None = given["args"]["List"]["duplicate_treatment"]
    return treatment

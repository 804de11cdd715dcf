"""Says which filters an index answers exactly, by the mapping of its fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from caraway_plugins.sources.opensearch.mapping import Field, IndexMapping

Kind = Literal["keyword", "integer", "date", "boolean", "double", "ip"]
_BITS: Mapping[str, int] = {"long": 64, "integer": 32, "short": 16, "byte": 8}
_KINDS: Mapping[str, Kind] = {
    "keyword": "keyword", **dict.fromkeys(_BITS, "integer"), "date": "date", "boolean": "boolean",
    "double": "double", "ip": "ip",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A column is searched by the values of a field.

    Texts of more than `most_chars` characters are not in the index. A field that `fills_nulls` has
    a value where the document has none.
    """

    column: str
    field: str
    kind: Kind
    bits: int = 0
    most_chars: int | None = None
    is_normalized: bool = False
    fills_nulls: bool = False


def rules_of(mapping: IndexMapping, settings: Mapping[str, Any]) -> tuple[FieldRule, ...]:
    """Return the rules of an index, which may have usual values in its settings."""
    fields = mapping.fields
    # A field that others are copied to has more values than the documents show.
    copied = {name for each in fields.values() for name in _many(each.get("copy_to"))}
    usual = (settings.get("mapping") or {}).get("ignore_above")
    return tuple(
        rule
        for path, each in fields.items()
        if path not in copied and "script" not in each and (rule := _rule(path, each, usual))
    )


def common(found: Sequence[tuple[FieldRule, ...]]) -> tuple[FieldRule, ...]:
    """Return the rules that all indexes have."""
    first, *others = found
    return tuple(each for each in first if all(each in rules for rules in others))


def _rule(path: str, each: Field, usual: object) -> FieldRule | None:
    name = path
    if each.get("type") == "text":
        inner = (each.get("fields") or {}).items()
        keywords = [(name, field) for name, field in inner if field.get("type") == "keyword"]
        if not keywords:
            return None
        name, each = f"{path}.{keywords[0][0]}", keywords[0][1]
    kind = _KINDS.get(str(each.get("type")))
    if kind is None or each.get("index", True) is not True:
        return None
    most = each.get("ignore_above", usual) if kind == "keyword" else None
    return FieldRule(
        path,
        name,
        kind,
        _BITS.get(each["type"], 0),
        None if most is None else int(most),
        bool(each.get("normalizer")),
        each.get("null_value") is not None,
    )


def _many(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())

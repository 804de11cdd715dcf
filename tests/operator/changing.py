"""Changes nested values in tests by the names of their fields alone."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Value = TypeVar("Value")


# Any: values of fields.
def changed(value: Value, **changes: Any) -> Value:
    """Return a dataclass with changes of its fields, or of fields of dataclasses in them."""
    assert is_dataclass(value) and not isinstance(value, type)
    own = {name: changes.pop(name) for name in _names(value) & changes.keys()}
    for name in _names(value):
        part = getattr(value, name)
        if is_dataclass(part) and not isinstance(part, type):
            inner = {each: changes.pop(each) for each in _names(part) & changes.keys()}
            own |= {name: replace(part, **inner)} if inner else {}
    assert not changes, f"no such fields: {changes}"
    return replace(value, **own)


def _names(value: Any) -> set[str]:
    return {field.name for field in fields(value)}

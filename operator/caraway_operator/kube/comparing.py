"""Compares a desired with a live object, by the fields of the desired one only."""

from collections.abc import Mapping, Sequence
from typing import Any

from caraway_kube.resources import quantities

# The keys by which the API server merges lists.
_KEYS = ("name", "mountPath", "containerPort", "uid", "ip", "topologyKey", "type")
# Maps that are atomic: an additional key changes the meaning of the whole map.
_WHOLE = frozenset(
    {"labelSelector", "matchLabels", "namespaceSelector", "nodeSelector", "podSelector", "selector"}
)


# Any: JSON values, here and below.
def covers(desired: object, live: object) -> bool:
    """Return whether `live` has all fields of `desired`. Its other fields are ignored."""
    if _is_empty(desired) and _is_empty(live):
        return True
    match desired, live:
        case Mapping(), Mapping():
            return all(
                covers(value, live.get(key)) and (key not in _WHOLE or covers(live.get(key), value))
                for key, value in desired.items()
            )
        case list(), list():
            return _covers_list(desired, live)
    return _is_same(desired, live)


def without_nulls(value: object) -> Any:
    """Return the value without keys whose value is None, which the API server drops too."""
    match value:
        case Mapping():
            return {key: without_nulls(held) for key, held in value.items() if held is not None}
        case list() | tuple():
            return [without_nulls(held) for held in value]
    return value


def without_empty(held: Mapping[str, object]) -> dict[str, object]:
    """Return the map without keys whose value is empty."""
    return {key: value for key, value in held.items() if not _is_empty(value)}


def _is_empty(value: object) -> bool:
    # The API server omits empty values.
    return value is None or (isinstance(value, Mapping | list) and not value)


def _is_same(desired: Any, live: Any) -> bool:
    if desired == live:
        return True
    # The API server normalizes quantities, such as 1000m to 1.
    try:
        return quantities.number(desired) == quantities.number(live)
    except ValueError:
        return False


def _covers_list(desired: list[Any], live: list[object]) -> bool:
    key = _key(desired)
    if key is None:
        return len(desired) == len(live) and all(map(covers, desired, live))
    return all(covers(element, _found(live, key, element)) for element in desired)


def _key(desired: Sequence[Any]) -> str | None:
    for key in _KEYS if desired else ():
        if all(isinstance(element, Mapping) and key in element for element in desired):
            values = [element[key] for element in desired]
            return key if len(set(map(str, values))) == len(values) else None
    return None


def _found(live: list[object], key: str, element: Mapping[str, object]) -> object:
    for candidate in live:
        if isinstance(candidate, Mapping) and candidate.get(key) == element[key]:
            return candidate
    return None
